"""From a request to what its action works with, and from a result or an error back to a response."""

from __future__ import annotations

from typing import Any

from angelhair.server.aws import query_protocol, xml
from angelhair.server.aws.errors import AwsError, InvalidAction, Unreadable
from angelhair.server.aws.shape import Shape
from angelhair.server.http.messages import Request, Response
from angelhair.server.sns.errors import InvalidParameter, UnsupportedOperation
from angelhair.server.sns.operations import ELSEWHERE, OPERATIONS
from angelhair.server.sns.recognising import Asked

XML = xml.Dialect("http://sns.amazonaws.com/doc/2010-03-31/", nested=True)


def decode(asked: Asked) -> Any:
    """The checked input, of the type that the `check` of its operation gives. Raises nothing but `AwsError`."""
    operation = OPERATIONS.get(asked.action)
    if operation is None:
        raise UnsupportedOperation(asked.action) if asked.action in ELSEWHERE else InvalidAction(asked.action)
    try:
        return operation.check(query_protocol.read(operation, asked.form))
    except Unreadable as error:
        raise InvalidParameter(error.name or "A binary value is not valid base64.") from None


def answer(asked: Asked, request: Request, result: Shape) -> Response:
    headers = (("x-amzn-RequestId", request.id),)
    return Response(200, xml.encode_result(XML, asked.action, result, request.id), xml.CONTENT_TYPE, headers)


def refuse(request: Request, error: AwsError) -> Response:
    headers = (("x-amzn-RequestId", request.id),)
    return Response(error.status, xml.encode_error(XML, error, request.id), xml.CONTENT_TYPE, headers)
