"""The other side: botocore, with its model of SNS."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import botocore.parsers
import botocore.serialize
import botocore.session

from angelhair.server.http.messages import Request, Response
from angelhair.server.sns.answering import decode
from angelhair.server.sns.recognising import recognise
from tests.wire.sqs.amazon import request

MODEL = botocore.session.get_session().get_service_model("sns")
ACTIONS = sorted(MODEL.operation_names)
TOPIC = "arn:aws:sns:eu-west-1:123456789012:orders"
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}

_VALUES = {
    "Topic", "MessageGroup", "MessageAttributes", "MessageBody", "ReplayStatus", "Completed", "Failed", "Pending",
}
"""What else is listed where the model speaks of attributes: values of them, and one that cannot be set."""

_serializer = botocore.serialize.create_serializer("query", include_validation=False)
_parser = botocore.parsers.create_parser("query")


def topic_attributes() -> set[str]:
    """Those that can be set, which the model names in its documentation only."""
    named = _documented("SetTopicAttributes", "AttributeName") | _documented("CreateTopic", "Attributes")
    # One is only spoken of in passing.
    return named - _VALUES | {"FifoTopic"}


def subscription_attributes() -> set[str]:
    named = _documented("SetSubscriptionAttributes", "AttributeName") | _documented("Subscribe", "Attributes")
    return named - _VALUES


def _documented(operation: str, member: str) -> set[str]:
    """Each stands at the beginning of a list's item."""
    text = MODEL.operation_model(operation).input_shape.members[member].documentation
    return set(re.findall(r"<li> ?<p> ?<code>([A-Z]\w+)</code>", text))


def asked_for(action: str, **members: object) -> Request:
    """A request as botocore writes it. Whatever members are given are sent, right or wrong."""
    written = _serializer.serialize_to_request(members, MODEL.operation_model(action))
    return request(headers=FORM, body=urlencode(written["body"]).encode())


def decoded(given: Request) -> Any:
    asked = recognise(given)
    assert asked is not None
    return decode(asked)


def parsed(response: Response, action: str) -> dict[str, Any]:
    """A response as botocore reads it."""
    raw = {"status_code": response.status, "headers": dict(response.headers), "body": response.body}
    understood: dict[str, Any] = _parser.parse(raw, MODEL.operation_model(action).output_shape)
    return understood
