"""Checks that several actions share."""

from __future__ import annotations

from angelhair import limits
from angelhair.server.aws.patterns import GROUP_ID
from angelhair.server.sqs.addresses import QueueAddress, queue_address
from angelhair.server.sqs.errors import InvalidParameterValue, MissingParameter, invalid_value

NOT_FOR_THIS_TYPE = "The request include parameter that is not valid for this queue type."


def need_queue(url: str) -> QueueAddress:
    if not url:
        raise MissingParameter("QueueUrl")
    return queue_address(url)


def check_group_id(value: str, parameter: str) -> None:
    if GROUP_ID.fullmatch(value) is None:
        lengths = f"1 to {limits.AWS_GROUP_ID_LENGTH} in length."
        reason = f"{parameter} can only include alphanumeric and punctuation characters. {lengths}"
        raise invalid_value(value, parameter, reason)


def check_max_results(value: int | None, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise InvalidParameterValue(
            f"Value for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and {most}."
        )


def invalid_next_token() -> InvalidParameterValue:
    """Also what an action says of a token that it did not give out."""
    return InvalidParameterValue("Invalid or expired next token.")


def check_next_token(token: str | None) -> None:
    if token is not None and not 1 <= len(token) <= limits.AWS_NEXT_TOKEN_LENGTH:
        raise invalid_next_token()
