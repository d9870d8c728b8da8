"""Nothing of the newest botocore model is unknown here: no action, no member, no attribute; errors have its codes."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from angelhair.server.aws.errors import AwsError, CommonError, InternalFailure
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sns import errors
from angelhair.server.sns.checks.attributes import OF_SUBSCRIPTIONS, OF_TOPICS
from angelhair.server.sns.door import ACTIONS as DONE
from angelhair.server.sns.operations import ELSEWHERE, OPERATIONS
from angelhair.server.sns.outputs import Empty, Nothing
from tests.wire.models import differences
from tests.wire.sns.amazon import ACTIONS, MODEL, subscription_attributes, topic_attributes

ROOTS = (AwsError, CommonError, InternalFailure, errors.SnsError)

COMMON = {"UnsupportedOperation"}
"""Answered by AWS although the model does not say so."""

LISTS = {"StringListValues", "BinaryListValues"}
"""Members of message attributes that SQS's model has, and SNS's has not."""


def test_every_action_is_known_and_done_or_said_to_be_elsewhere() -> None:
    assert sorted([*OPERATIONS, *ELSEWHERE]) == ACTIONS
    assert set(DONE) == set(OPERATIONS)
    assert (len(OPERATIONS), len(ELSEWHERE)) == (21, 21)


@pytest.mark.parametrize("action", sorted(OPERATIONS))
def test_every_member_of_an_input_is_known(action: str) -> None:
    ours: Any = msgspec.inspect.type_info(OPERATIONS[action].input)
    found = differences(ours, MODEL.operation_model(action).input_shape, action)
    assert [path for path in found if path.rpartition(".")[2] not in LISTS] == []


@pytest.mark.parametrize("action", sorted(OPERATIONS))
def test_every_member_of_an_output_is_known(action: str) -> None:
    theirs = MODEL.operation_model(action).output_shape
    output = OPERATIONS[action].output
    if theirs is None:
        assert output is Nothing
    elif not theirs.members:
        assert output is Empty
    else:
        ours: Any = msgspec.inspect.type_info(output)
        assert differences(ours, theirs, action) == []


def test_message_attributes_are_those_of_sqs() -> None:
    ours: Any = msgspec.inspect.type_info(MessageAttributeValue)
    assert set(differences(ours, MODEL.shape_for("MessageAttributeValue"), "A")) == {f"A.{name}" for name in LISTS}


def test_every_error_has_the_code_and_the_status_of_the_model() -> None:
    modelled = {
        shape.metadata["error"]["code"]: shape.metadata["error"]["httpStatusCode"]
        for shape in (MODEL.shape_for(name) for name in MODEL.shape_names)
        if shape.metadata.get("exception") and "error" in shape.metadata
    }
    ours = {
        found.code: found.status for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, AwsError) and found not in ROOTS
    }
    assert {code: modelled.get(code) for code in ours if code not in COMMON} == {
        code: status for code, status in ours.items() if code not in COMMON
    }
    assert COMMON.isdisjoint(modelled)


def test_every_attribute_that_the_model_speaks_of_is_known() -> None:
    assert topic_attributes() == set(OF_TOPICS)
    assert subscription_attributes() == set(OF_SUBSCRIPTIONS)
