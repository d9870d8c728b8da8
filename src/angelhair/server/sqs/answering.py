"""From a request to what its action works with, and from a result or an error back to a response."""

from __future__ import annotations

from typing import Any

import msgspec

from angelhair.server.aws import query_protocol, xml
from angelhair.server.aws.errors import AwsError, InvalidAction, Protocol, Unreadable
from angelhair.server.aws.shape import Shape
from angelhair.server.http.messages import Request, Response
from angelhair.server.sqs import json_protocol
from angelhair.server.sqs.errors import InvalidParameterValue, UnknownOperation, invalid_value
from angelhair.server.sqs.operations import OPERATIONS
from angelhair.server.sqs.recognising import Asked

JSON_1_0 = "application/x-amz-json-1.0"
XML = xml.Dialect("http://queue.amazonaws.com/doc/2012-11-05/")

_encode = msgspec.json.Encoder().encode


class _Error(msgspec.Struct, omit_defaults=True):
    type: str = msgspec.field(name="__type")
    message: str = ""


def decode(asked: Asked, request: Request) -> Any:
    """The checked input, of the type that the `check` of its operation gives. Raises nothing but `AwsError`."""
    operation = OPERATIONS.get(asked.action)
    if operation is None:
        if asked.protocol is Protocol.QUERY and asked.action:
            raise InvalidAction(asked.action)
        raise UnknownOperation
    if asked.form is None:
        return operation.check(json_protocol.read(operation, request.body))
    try:
        return operation.check(query_protocol.read(operation, asked.form))
    except Unreadable as error:
        if error.name:
            raise invalid_value(error.text, error.name, "Must be an integer.") from None
        raise InvalidParameterValue("A binary value is not valid base64.") from None


def answer(asked: Asked, request: Request, result: Shape) -> Response:
    headers = (("x-amzn-RequestId", request.id),)
    if asked.protocol is Protocol.JSON:
        return Response(200, _encode(result), JSON_1_0, headers)
    return Response(200, xml.encode_result(XML, asked.action, result, request.id), xml.CONTENT_TYPE, headers)


def refuse(protocol: Protocol, request: Request, error: AwsError) -> Response:
    request_id = ("x-amzn-RequestId", request.id)
    if protocol is Protocol.QUERY:
        if isinstance(error, UnknownOperation):
            # No action was named at all, and so AWS answers before it knows which service is meant.
            return Response(404, b"<UnknownOperationException/>\n", xml.CONTENT_TYPE, (request_id,))
        return Response(error.status, xml.encode_error(XML, error, request.id), xml.CONTENT_TYPE, (request_id,))
    body = _encode(_Error(error.namespace + error.shape, error.message_in(protocol)))
    if not error.in_header:
        return Response(error.status, body, JSON_1_0, (request_id,))
    fault = "Sender" if error.sender_fault else "Receiver"
    return Response(error.status, body, JSON_1_0, (request_id, ("x-amzn-query-error", f"{error.code};{fault}")))
