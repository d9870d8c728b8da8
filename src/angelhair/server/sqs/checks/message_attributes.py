"""Message attributes: names, types, values, and how much they add to a message's size."""

from __future__ import annotations

from collections.abc import Mapping

from angelhair import limits
from angelhair.server.aws.characters import is_xml_text
from angelhair.server.aws.errors import echoed
from angelhair.server.aws.patterns import ATTRIBUTE_NAME, ATTRIBUTE_TYPE, NUMBER, RESERVED
from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sqs.errors import InvalidMessageContents, InvalidParameterValue, UnsupportedOperation

TRACE_HEADER = "AWSTraceHeader"
PRIORITY = "Angelhair.Priority"



def check_attributes(attributes: Mapping[str, MessageAttributeValue], operation: str) -> int:
    """The bytes that they add to the message: names, types and values all count."""
    if len(attributes) > limits.AWS_MESSAGE_ATTRIBUTES:
        raise InvalidParameterValue(
            f"Number of message attributes [{len(attributes)}] exceeds the allowed maximum "
            f"[{limits.AWS_MESSAGE_ATTRIBUTES}]."
        )
    size_bytes = 0
    for name, value in attributes.items():
        _check_name(name)
        size_bytes += len(name) + len(value.data_type.encode()) + len(_checked_value(name, value, operation))
    return size_bytes


def _check_name(name: str) -> None:
    if not name:
        raise InvalidParameterValue("The request must contain non-empty message (user) attribute names.")
    if len(name.encode()) > limits.AWS_ATTRIBUTE_NAME_BYTES:
        longest = limits.AWS_ATTRIBUTE_NAME_BYTES + 1
        raise InvalidParameterValue(f"Message (user) attribute name must be shorter than {longest} bytes.")
    if ATTRIBUTE_NAME.fullmatch(name) is None:
        # The blank at the end is AWS's.
        raise InvalidParameterValue(
            "Message (user) attributes name can only contain upper and lower score characters, digits, periods, "
            "hyphens and underscores. "
        )
    if name.lower().startswith(RESERVED):
        raise InvalidParameterValue(
            "You can't use message attribute names beginning with 'AWS.' or 'Amazon.'. "
            "These strings are reserved for internal use."
        )
    if name[0] == "." or name[-1] == "." or ".." in name:
        raise InvalidParameterValue(
            "You can't use message attribute names beginning or ending with a period, or with successive periods."
        )


def _checked_value(name: str, value: MessageAttributeValue, operation: str) -> bytes:
    """The value, encoded."""
    if value.string_list_values or value.binary_list_values:
        raise UnsupportedOperation(f"Message attribute list values in {operation} operation are not supported.")
    data_type = value.data_type
    if not data_type:
        raise InvalidParameterValue(
            f"The message (user) attribute '{name}' must contain a non-empty message attribute type."
        )
    if len(data_type.encode()) > limits.AWS_ATTRIBUTE_TYPE_BYTES:
        longest = limits.AWS_ATTRIBUTE_TYPE_BYTES + 1
        raise InvalidParameterValue(f"Message (user) attribute type must be shorter than {longest} bytes.")
    found = ATTRIBUTE_TYPE.fullmatch(data_type)
    if found is None:
        raise InvalidParameterValue(
            f"The type of message (user) attribute '{name}' is invalid. "
            "You must use only the following supported type prefixes: Binary, Number, String."
        )
    if not is_xml_text(data_type.encode()):
        raise InvalidMessageContents
    if found[1] == "Binary":
        if not value.binary_value:
            raise _empty(name, data_type)
        return value.binary_value
    if not value.string_value:
        raise _empty(name, data_type)
    if found[1] == "Number" and NUMBER.fullmatch(value.string_value) is None:
        raise InvalidParameterValue(f"Can't cast the value of message (user) attribute '{name}' to a number.")
    encoded = value.string_value.encode()
    if not is_xml_text(encoded):
        raise InvalidMessageContents
    return encoded


def _empty(name: str, data_type: str) -> InvalidParameterValue:
    return InvalidParameterValue(
        f"Message (user) attribute '{name}' must contain a non-empty value of type '{data_type}'."
    )


def priority_in(attributes: Mapping[str, MessageAttributeValue]) -> int:
    """How urgent the message is, if it says so; whether its queue has that many priorities is the action's to see."""
    value = attributes.get(PRIORITY)
    if value is None:
        return 0
    text = value.string_value or ""
    if not (text.isascii() and text.isdigit() and len(text) == 1 and value.data_type.startswith("Number")):
        most = limits.PRIORITIES_MAXIMUM - 1
        raise InvalidParameterValue(f"The message (user) attribute '{PRIORITY}' must be a Number from 0 to {most}.")
    return int(text)


def trace_header_in(attributes: Mapping[str, MessageAttributeValue]) -> str:
    """The one system attribute that a sender may set. It does not count as part of the message's size."""
    for name in attributes:
        if name != TRACE_HEADER:
            raise InvalidParameterValue(f"Message system attribute name '{echoed(name)}' is invalid.")
    value = attributes[TRACE_HEADER]
    if value.data_type != "String":
        raise InvalidParameterValue(
            f"The type of message system attribute '{TRACE_HEADER}' is invalid. You must use the type String."
        )
    if not value.string_value:
        raise InvalidParameterValue(
            f"Message system attribute '{TRACE_HEADER}' must contain a non-empty value of type 'String'."
        )
    if not is_xml_text(value.string_value.encode()):
        raise InvalidMessageContents
    return value.string_value
