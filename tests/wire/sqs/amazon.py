"""The other side: botocore, with its model of SQS for JSON, and the same model as it was for the Query protocol.

Amazon took the names of the Query protocol out of the model when it moved SQS to JSON; they are written down here once
more, from the models before, so that nothing of ours is compared with itself.
"""

from __future__ import annotations

import copy
from typing import Any
from urllib.parse import urlencode

import botocore.parsers
import botocore.serialize
import botocore.session
from botocore.model import OperationModel, ServiceModel

from angelhair.server.aws.errors import Protocol
from angelhair.server.http.messages import Request, Response
from angelhair.server.sqs import answering
from angelhair.server.sqs.checks.beyond import held_to_sqs
from angelhair.server.sqs.recognising import Asked, recognise

ACCOUNT = "123456789012"
HOST = "queues.example:9324"
URL = f"http://{HOST}/{ACCOUNT}/orders"
FIFO_URL = f"{URL}.fifo"

_MEMBERS = {
    "AWSAccountIdList": "AWSAccountId", "ActionNameList": "ActionName", "AttributeNameList": "AttributeName",
    "BatchResultErrorEntryList": "BatchResultErrorEntry", "BinaryList": "BinaryListValue",
    "ChangeMessageVisibilityBatchRequestEntryList": "ChangeMessageVisibilityBatchRequestEntry",
    "ChangeMessageVisibilityBatchResultEntryList": "ChangeMessageVisibilityBatchResultEntry",
    "DeleteMessageBatchRequestEntryList": "DeleteMessageBatchRequestEntry",
    "DeleteMessageBatchResultEntryList": "DeleteMessageBatchResultEntry",
    "ListMessageMoveTasksResultEntryList": "ListMessageMoveTasksResultEntry",
    "MessageAttributeNameList": "MessageAttributeName", "MessageList": "Message",
    "MessageSystemAttributeList": "MessageSystemAttributeName", "QueueUrlList": "QueueUrl",
    "SendMessageBatchRequestEntryList": "SendMessageBatchRequestEntry",
    "SendMessageBatchResultEntryList": "SendMessageBatchResultEntry", "StringList": "StringListValue",
    "TagKeyList": "TagKey",
}
_MAPS = {
    "MessageBodyAttributeMap": ("MessageAttribute", "Name"),
    "MessageBodySystemAttributeMap": ("MessageSystemAttribute", "Name"),
    "MessageSystemAttributeMap": ("Attribute", "Name"), "QueueAttributeMap": ("Attribute", "Name"),
    "TagMap": ("Tag", "Key"),
}

_session = botocore.session.get_session()
JSON_MODEL: ServiceModel = _session.get_service_model("sqs")


def _for_query() -> ServiceModel:
    description = copy.deepcopy(_session.get_component("data_loader").load_service_model("sqs", "service-2"))
    description["metadata"] |= {
        "protocol": "query", "protocols": ["query"], "xmlNamespace": "http://queue.amazonaws.com/doc/2012-11-05/",
    }
    shapes = description["shapes"]
    for name, item in _MEMBERS.items():
        shapes[name]["member"]["locationName"] = item
    for name, (_, key) in _MAPS.items():
        shapes[name]["key"]["locationName"] = key
        shapes[name]["value"]["locationName"] = "Value"
    for shape in shapes.values():
        for member in shape.get("members", {}).values():
            if member["shape"] in _MAPS:
                member["locationName"] = _MAPS[member["shape"]][0]
            if member["shape"] in ("StringList", "BinaryList"):
                member["locationName"] = _MEMBERS[member["shape"]]
    for name, operation in description["operations"].items():
        if "output" in operation:
            operation["output"]["resultWrapper"] = f"{name}Result"
    return ServiceModel(description, "sqs")


QUERY_MODEL = _for_query()
MODELS = {Protocol.JSON: JSON_MODEL, Protocol.QUERY: QUERY_MODEL}
ACTIONS = sorted(JSON_MODEL.operation_names)
PROTOCOLS = list(Protocol)

_serializers = {
    Protocol.JSON: botocore.serialize.create_serializer("json", include_validation=False),
    Protocol.QUERY: botocore.serialize.create_serializer("query", include_validation=False),
}
_parsers = {
    Protocol.JSON: botocore.parsers.create_parser("json"),
    Protocol.QUERY: botocore.parsers.create_parser("query"),
}


def operation_model(protocol: Protocol, action: str) -> OperationModel:
    return MODELS[protocol].operation_model(action)


def request(
    method: str = "POST", path: str = "/", query: str = "", headers: dict[str, str] | None = None, body: bytes = b"",
    secure: bool = False,
) -> Request:
    return Request(method, path, query, {"host": HOST, **(headers or {})}, body, "request-1", "127.0.0.1", secure, True)


def asked_for(action: str, members: object, protocol: Protocol) -> Request:
    """A request as botocore writes it. Whatever members are given are sent, right or wrong."""
    written = _serializers[protocol].serialize_to_request(members, operation_model(protocol, action))
    body = written["body"]
    headers = {name.lower(): value for name, value in written["headers"].items()}
    raw = urlencode(body).encode() if isinstance(body, dict) else body
    return request(written["method"], written["url_path"], headers=headers, body=raw)


def form(**parameters: str) -> Request:
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    return request(headers=headers, body=urlencode(parameters).encode())


def json(action: str, body: bytes) -> Request:
    headers = {"x-amz-target": f"AmazonSQS.{action}", "content-type": "application/x-amz-json-1.0"}
    return request(headers=headers, body=body)


def asked(given: Request) -> Asked:
    found = recognise(given)
    assert found is not None
    return found


def decode(question: Asked, given: Request) -> Any:
    """As an action has it whose queue has SQS's limits."""
    return held_to_sqs(answering.decode(question, given))


def decoded(given: Request) -> Any:
    return decode(asked(given), given)


def parsed(response: Response, action: str, protocol: Protocol) -> dict[str, Any]:
    """A response as botocore reads it."""
    headers = {name.lower(): value for name, value in response.headers}
    raw = {"status_code": response.status, "headers": headers, "body": response.body}
    shape = operation_model(protocol, action).output_shape
    understood: dict[str, Any] = _parsers[protocol].parse(raw, shape)
    return understood
