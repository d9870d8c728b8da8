"""How an AWS door says no: the root of all errors, those that every service has, and the protocols they are said in.

    AwsError
    ├── of a door: what its service's model has, and more         (`errors.py` there)
    └── CommonError: InvalidAction, MalformedQueryString
        ├── AtTheGate: AccessDenied, SignatureDoesNotMatch, …     what a signature or a policy refuses
        └── ServerFault
            ├── InternalFailure       it may have happened
            └── ServiceUnavailable    it did not happen

`code` is what the Query protocol says, and what SDKs of the JSON protocol read from the header `x-amzn-query-error`;
`shape` is the name in a JSON body.
"""

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
    namespace: ClassVar[str] = ""
    """Of the shape, in JSON."""
    in_header: ClassVar[bool] = True
    """Whether JSON answers carry the Query code; what the framework refuses before its service sees it has none."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.text)
        self.message = message or self.text

    def __init_subclass__(cls) -> None:
        cls.shape = cls.__dict__.get("shape", cls.__name__)
        cls.code = cls.__dict__.get("code", cls.shape)

    def message_in(self, protocol: Protocol) -> str:
        """The wording, which may differ by protocol."""
        return self.message


# --- what every service has -------------------------------------------------------------------------------------------


class CommonError(AwsError):
    """What AWS answers although no model says so."""

    namespace = "com.amazon.coral.service#"


class InvalidAction(CommonError):
    """An action that there is not, in the Query protocol."""

    shape = "InvalidActionException"
    code = "InvalidAction"

    def __init__(self, action: str) -> None:
        super().__init__(f"The action {echoed(action)} is not valid for this endpoint.")


class MalformedQueryString(CommonError):
    status = 404
    text = "The query string contains a syntax error."


class AtTheGate(CommonError):
    """A signature or a policy refuses it. What is said comes with the refusal."""

    status = 403


class AccessDenied(AtTheGate):
    shape = "AccessDeniedException"
    code = "AccessDenied"
    text = "Access to the resource is denied."


class ExpiredToken(AtTheGate):
    shape = "ExpiredTokenException"
    code = "ExpiredToken"
    text = "The security token included in the request is expired"


class IncompleteSignature(AtTheGate):
    shape = "IncompleteSignatureException"
    code = "IncompleteSignature"
    status = 400


class InvalidClientTokenId(AtTheGate):
    pass


class InvalidQueryParameter(AtTheGate):
    """The query of a signed request could be read in two ways."""

    status = 400


class MissingAuthenticationToken(AtTheGate):
    shape = "MissingAuthenticationTokenException"
    code = "MissingAuthenticationToken"


class SignatureDoesNotMatch(AtTheGate):
    shape = "InvalidSignatureException"
    code = "SignatureDoesNotMatch"


class ServerFault(CommonError):
    """Not the client's doing: SDKs try again by themselves."""

    sender_fault = False


class InternalFailure(ServerFault):
    """It may have happened, or may yet."""

    status = 500
    text = "The request processing has failed because of an unknown error, exception or failure."


class ServiceUnavailable(ServerFault):
    """It did not happen."""

    status = 503
    text = "The request has failed due to a temporary failure of the server."


# --- forms ------------------------------------------------------------------------------------------------------------


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
