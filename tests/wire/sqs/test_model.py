"""Nothing of the newest botocore model is unknown here: no action, no member, no error, no attribute."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest

from angelhair.server.sqs import errors
from angelhair.server.sqs.checks.attributes import ALL, BEYOND, QUEUE_ATTRIBUTES, READ_ONLY, SETTABLE
from angelhair.server.sqs.checks.message_attributes import TRACE_HEADER
from angelhair.server.sqs.checks.queues import FOR_OWNERS, GRANTABLE
from angelhair.server.sqs.checks.receipts import MESSAGE_SYSTEM_ATTRIBUTES
from angelhair.server.sqs.operations import OPERATIONS
from angelhair.server.sqs.outputs import Nothing
from tests.wire.models import differences
from tests.wire.sqs.amazon import ACTIONS, JSON_MODEL

STATUSES = {
    "QueueDoesNotExist": ("AWS.SimpleQueueService.NonExistentQueue", 400),
    "QueueNameExists": ("QueueAlreadyExists", 400),
    "QueueDeletedRecently": ("AWS.SimpleQueueService.QueueDeletedRecently", 400),
    "MessageNotInflight": ("AWS.SimpleQueueService.MessageNotInflight", 400),
    "UnsupportedOperation": ("AWS.SimpleQueueService.UnsupportedOperation", 400),
    "BatchEntryIdsNotDistinct": ("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", 400),
    "BatchRequestTooLong": ("AWS.SimpleQueueService.BatchRequestTooLong", 400),
    "EmptyBatchRequest": ("AWS.SimpleQueueService.EmptyBatchRequest", 400),
    "InvalidBatchEntryId": ("AWS.SimpleQueueService.InvalidBatchEntryId", 400),
    "TooManyEntriesInBatchRequest": ("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", 400),
    "PurgeQueueInProgress": ("AWS.SimpleQueueService.PurgeQueueInProgress", 403),
    "ReceiptHandleIsInvalid": ("ReceiptHandleIsInvalid", 404),
    "InvalidAddress": ("InvalidAddress", 404),
    "ResourceNotFoundException": ("ResourceNotFoundException", 404),
    "OverLimit": ("OverLimit", 403),
    "RequestThrottled": ("RequestThrottled", 403),
    "InvalidSecurity": ("InvalidSecurity", 403),
    "KmsAccessDenied": ("KMS.AccessDeniedException", 400),
    "KmsDisabled": ("KMS.DisabledException", 400),
    "KmsInvalidKeyUsage": ("KMS.InvalidKeyUsageException", 400),
    "KmsInvalidState": ("KMS.InvalidStateException", 400),
    "KmsNotFound": ("KMS.NotFoundException", 400),
    "KmsThrottled": ("KMS.ThrottlingException", 400),
    "KmsOptInRequired": ("KMS.OptInRequired", 403),
    "InvalidAttributeName": ("InvalidAttributeName", 400),
    "InvalidAttributeValue": ("InvalidAttributeValue", 400),
    "InvalidIdFormat": ("InvalidIdFormat", 400),
    "InvalidMessageContents": ("InvalidMessageContents", 400),
}
"""By the shape: the code of the Query protocol and the HTTP status."""


def our_errors() -> dict[str, type[errors.SqsError]]:
    return {
        found.shape: found for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, errors.SqsError) and found.namespace == errors.MODELLED and found is not errors.SqsError
    }


def names_in(shape: str) -> set[str]:
    return set(JSON_MODEL.shape_for(shape).enum)


def test_every_action_is_known() -> None:
    assert sorted(OPERATIONS) == ACTIONS
    assert len(ACTIONS) == 23


@pytest.mark.parametrize("action", ACTIONS)
def test_every_member_of_an_input_is_known(action: str) -> None:
    ours: Any = msgspec.inspect.type_info(OPERATIONS[action].input)
    assert differences(ours, JSON_MODEL.operation_model(action).input_shape, action) == []


@pytest.mark.parametrize("action", ACTIONS)
def test_every_member_of_an_output_is_known(action: str) -> None:
    theirs = JSON_MODEL.operation_model(action).output_shape
    if theirs is None:
        assert OPERATIONS[action].output is Nothing
    else:
        ours: Any = msgspec.inspect.type_info(OPERATIONS[action].output)
        assert differences(ours, theirs, action) == []


def test_every_error_of_the_model_is_known_with_its_code_and_status() -> None:
    modelled = {name for name in JSON_MODEL.shape_names if JSON_MODEL.shape_for(name).metadata.get("exception")}
    known = our_errors()
    assert set(known) == modelled == set(STATUSES)
    assert {name: (error.code, error.status) for name, error in known.items()} == STATUSES
    assert all(error.sender_fault for error in known.values())


def test_every_queue_attribute_is_known() -> None:
    assert names_in("QueueAttributeName") == QUEUE_ATTRIBUTES - BEYOND.keys() == {ALL, *READ_ONLY, *SETTABLE}
    assert all(name.startswith("Angelhair.") for name in BEYOND)


def test_every_attribute_that_can_be_set_has_a_field_of_its_own() -> None:
    from angelhair.server.sqs.checked import QueueAttributes

    fields = [settable.field for settable in (*SETTABLE.values(), *BEYOND.values())]
    assert sorted([*fields, "texts"]) == sorted(QueueAttributes.__struct_fields__)


def test_every_system_attribute_of_a_message_is_known() -> None:
    assert names_in("MessageSystemAttributeName") == MESSAGE_SYSTEM_ATTRIBUTES
    assert names_in("MessageSystemAttributeNameForSends") == {TRACE_HEADER}


def test_every_action_can_be_granted_or_is_for_owners_or_is_a_batch() -> None:
    assert GRANTABLE.isdisjoint(FOR_OWNERS)
    assert (GRANTABLE | FOR_OWNERS) - {"*"} == {name for name in ACTIONS if not name.endswith("Batch")}


def test_a_difference_would_be_found() -> None:
    ours: Any = msgspec.inspect.type_info(OPERATIONS["DeleteMessage"].input)
    theirs = JSON_MODEL.operation_model("ChangeMessageVisibility").input_shape
    assert differences(ours, theirs, "X") == ["X.VisibilityTimeout"]
