"""How a signature is refused: with Amazon's codes, and its words where they are known, since clients look for both.

    MissingAuthenticationToken    there is no signature
    IncompleteSignature           a part of it is missing, or not of its form
    InvalidQueryParameter         the query could be read in two ways
    InvalidClientTokenId          there is no such key, it is disabled, or it came with a session token
    SignatureDoesNotMatch         out of date, out of scope, or made over something else
    AccessDenied                  what should be signed is not; or the key is not for this

Nothing that a client sent is repeated but what has been seen to be of its form: these texts go into logs and XML.
"""

from __future__ import annotations

from collections.abc import Sequence

from angelhair.server.auth.access_keys import has_form_of_id

BAD_REQUEST, FORBIDDEN = 400, 403

_UNKNOWN = "InvalidClientTokenId"
_UNKNOWN_TEXT = "The security token included in the request is invalid."


class Refused(Exception):
    """The request is not from whom it says, or cannot be seen to be."""

    def __init__(self, code: str, message: str, status: int = FORBIDDEN) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        """Of the HTTP response."""


def missing() -> Refused:
    return Refused("MissingAuthenticationToken", "Request is missing Authentication Token")


def incomplete(message: str) -> Refused:
    return Refused("IncompleteSignature", message, BAD_REQUEST)


def ambiguous(message: str) -> Refused:
    return Refused("InvalidQueryParameter", message, BAD_REQUEST)


class UnknownKey(Refused):
    """There is no such key, or it is disabled, or it came with another secret: which of these is not said."""

    def __init__(self, access_key_id: str = "") -> None:
        super().__init__(_UNKNOWN, _UNKNOWN_TEXT)
        self.shown_id = access_key_id if has_form_of_id(access_key_id) else ""


def unknown_key(access_key_id: str = "") -> Refused:
    return UnknownKey(access_key_id)


def session_token() -> Refused:
    return Refused(_UNKNOWN, _UNKNOWN_TEXT)


def mismatch(message: str) -> Refused:
    return Refused("SignatureDoesNotMatch", message)


def wrong_signature() -> Refused:
    return mismatch(
        "The request signature we calculated does not match the signature you provided. "
        "Check your AWS Secret Access Key and signing method. Consult the service documentation for details."
    )


def unsigned_headers(names: Sequence[str]) -> Refused:
    message = f"There were headers present in the request which were not signed ({len(names)} of x-amz-...)."
    return Refused("AccessDenied", message)


def not_allowed(account: str, access_key_id: str, action: str) -> Refused:
    """For doors: the signature is right, and the key is not for this (`access_keys.allowed`)."""
    return Refused("AccessDenied", f"The key {access_key_id} of {account} is not authorized to perform: {action}")
