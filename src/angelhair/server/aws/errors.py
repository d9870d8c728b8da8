"""The root of all errors that an AWS door answers with, and the two protocols that they are said in."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar

from angelhair import limits


class Protocol(Enum):
    JSON = "json"
    QUERY = "query"


class AwsError(Exception):
    """The root of all."""

    code: ClassVar[str] = ""
    shape: ClassVar[str] = ""
    status: ClassVar[int] = 400
    sender_fault: ClassVar[bool] = True
    text: ClassVar[str] = ""
    """What is said when nothing else is."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.text)
        self.message = message or self.text

    def __init_subclass__(cls) -> None:
        cls.shape = cls.__dict__.get("shape", cls.__name__)
        cls.code = cls.__dict__.get("code", cls.shape)

    def message_in(self, protocol: Protocol) -> str:
        """The wording, which may differ by protocol."""
        return self.message


class Unreadable(Exception):
    """A parameter of a form is not of its type. Its door says so in its own words."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name} is not of its type")
        self.name = name
        """Empty when it is not known which it was: a binary value is no base64."""
        self.text = text


class MalformedForm(Exception):
    """What was sent as a form is none."""


def echoed(value: object) -> str:
    """A wrong value, as it is repeated to whoever sent it."""
    text = str(value)
    return text if len(text) <= limits.AWS_ECHO_LENGTH else f"{text[:limits.AWS_ECHO_LENGTH]}..."
