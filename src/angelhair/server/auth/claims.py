"""What a signature says of itself: in the Authorization header, or in the query of a presigned URL, never in both."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from angelhair import limits
from angelhair.server.auth.canonical import Pairs
from angelhair.server.auth.refusals import incomplete, missing, session_token

ALGORITHM = "AWS4-HMAC-SHA256"
TERMINATOR = "aws4_request"
SCOPE_PARTS = 5
"""Key, day, region, service, terminator."""

_HEADER_PARTS = ("Credential", "SignedHeaders", "Signature")
_SIGNATURE_PARAMETER = "X-Amz-Signature"
_QUERY_PARTS = (
    "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders", _SIGNATURE_PARAMETER,
)
_PRESIGNED = frozenset(_QUERY_PARTS)
_TOKEN_HEADER, _TOKEN_PARAMETER = "x-amz-security-token", "X-Amz-Security-Token"

_SIGNATURE = re.compile("[0-9a-f]{64}")
_NAMES = re.compile("[a-z0-9!#$%&'*+.^_`|~-]+(?:;[a-z0-9!#$%&'*+.^_`|~-]+)*")
_EXPIRES = re.compile("[0-9]{1,6}")


class Claim(NamedTuple):
    access_key_id: str
    date: str
    region: str
    service: str
    terminator: str
    signed: list[str]
    """Names of headers: lower case, sorted, each once."""
    signature: str
    """64 hexadecimal digits."""
    stamp: str
    """When it was signed, as it was sent: nobody has looked at it yet."""
    expires_seconds: int | None
    """How long a presigned URL is good for; None for a header."""


def claim_of(headers: Mapping[str, str], pairs: Pairs) -> tuple[Claim, Pairs]:
    """What is claimed, and those parameters of the query that were signed: all but the signature itself."""
    presigned = bool(pairs) and not _PRESIGNED.isdisjoint(dict(pairs))
    authorization = headers.get("authorization")
    if authorization is not None:
        if presigned:
            raise incomplete("Only one of the Authorization header and the X-Amz- query parameters may be used.")
        claim = _in_header(authorization, headers.get("x-amz-date"))
    elif presigned:
        claim = _in_query(dict(pairs))
        pairs = [pair for pair in pairs if pair[0] != _SIGNATURE_PARAMETER]
    else:
        raise missing()
    if _TOKEN_HEADER in headers or (pairs and _TOKEN_PARAMETER in dict(pairs)):
        # Angelhair gives no temporary keys, so whatever this token belongs to, it is not ours.
        raise session_token()
    return claim, pairs


def _in_header(authorization: str, stamp: str | None) -> Claim:
    algorithm, _, rest = authorization.partition(" ")
    if algorithm != ALGORITHM:
        raise incomplete(f"Unsupported AWS 'algorithm' (only {ALGORITHM} for now).")
    parts: dict[str, str] = {}
    for part in rest.split(","):
        name, equals, value = part.strip(" \t").partition("=")
        if not equals or name not in _HEADER_PARTS or name in parts:
            raise incomplete("Authorization header must have 'Credential', 'SignedHeaders' and 'Signature', each once.")
        parts[name] = value
    for name in _HEADER_PARTS:
        if name not in parts:
            raise incomplete(f"Authorization header requires '{name}' parameter.")
    if stamp is None:
        raise incomplete("Authorization header requires existence of a 'X-Amz-Date' header.")
    return _claim(parts["Credential"], parts["SignedHeaders"], parts["Signature"], stamp, None)


def _in_query(encoded: Mapping[str, str]) -> Claim:
    for name in _QUERY_PARTS:
        if name not in encoded:
            raise incomplete(f"AWS query-string parameters must include '{name}'.")
    algorithm, credential, stamp, expires, names, signature = (unquote(encoded[name]) for name in _QUERY_PARTS)
    if algorithm != ALGORITHM:
        raise incomplete(f"Unsupported AWS 'algorithm' (only {ALGORITHM} for now).")
    if _EXPIRES.fullmatch(expires) is None or not 1 <= int(expires) <= limits.PRESIGNED_SECONDS:
        raise incomplete(f"X-Amz-Expires must be a number of seconds from 1 to {limits.PRESIGNED_SECONDS}.")
    return _claim(credential, names, signature, stamp, int(expires))


def _claim(credential: str, names: str, signature: str, stamp: str, expires_seconds: int | None) -> Claim:
    scope = credential.split("/")
    if len(scope) != SCOPE_PARTS:
        raise incomplete(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term."
        )
    signed = names.split(";")
    if _NAMES.fullmatch(names) is None or any(map(str.__ge__, signed, signed[1:])):
        raise incomplete("SignedHeaders must be names in lower case, sorted, each once, with ';' between them.")
    if _SIGNATURE.fullmatch(signature) is None:
        raise incomplete("Signature must be 64 hexadecimal digits in lower case.")
    access_key_id, date, region, service, terminator = scope
    return Claim(access_key_id, date, region, service, terminator, signed, signature, stamp, expires_seconds)
