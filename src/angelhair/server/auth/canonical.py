"""The one form of a request that both sides sign, however it was written or carried.

What two requests may differ in and still have one canonical form, they must not differ in for a door. So a door reads
the path as `normal_path` has it, takes `+` in a query for a space, and never acts on a header that may be unsigned
(Content-Type: some SDKs do not sign it; which protocol is spoken is seen by X-Amz-Target, which all of them sign).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote_to_bytes

from angelhair import limits
from angelhair.server.auth.refusals import ambiguous, mismatch

# Not `str.split`: bytes of UTF-8 look like other white space when they are read as Latin-1.
_WHITE_SPACE = re.compile("[ \t\n\v\f\r]+")
_UNUSUAL_SPACE = re.compile("  |^ | $|[\t\n\v\f\r]")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
# Unreserved characters, and escapes in upper case of all others: what is so already need not be made so.
_IN_ORDER = re.compile(
    "(?:[A-Za-z0-9._~-]|%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF]|[89A-F][0-9A-F]))*"
)

Pairs = list[tuple[str, str]]


def canonical_request(
    method: str, path: str, pairs: Pairs, headers: Mapping[str, str], signed: Sequence[str], body_digest: str
) -> bytes:
    """Its bytes; raises UnicodeEncodeError for characters that no byte of a request can have become."""
    query = "&".join([f"{name}={value}" for name, value in pairs]) if pairs else ""
    lines = [method, canonical_path(path), query]
    lines += [f"{name}:{canonical_value(headers[name])}" for name in signed]
    lines += ("", ";".join(signed), body_digest)
    return "\n".join(lines).encode("latin-1")


def canonical_path(path: str) -> str:
    """Normal, and encoded once more: as every service but S3 has it."""
    if path == "/":
        return path
    return quote(normal_path(path).encode("latin-1"), safe="/~")


def normal_path(path: str) -> str:
    """Without empty segments, `.` and `..`, as the signers have it; a slash at the end stays."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept:
                kept.pop()
        elif segment and segment != ".":
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return "/" + "/".join(kept) + end


def canonical_pairs(query: str) -> Pairs:
    """Names and values, each decoded and encoded in the one way, sorted by name, then by value.

    A name without a value has an empty one. Nothing between two ampersands is no parameter.
    """
    if query.count("&") >= limits.QUERY_PARAMETERS:
        raise ambiguous(f"The query string has more than {limits.QUERY_PARAMETERS} parameters.")
    if _BROKEN_ESCAPE.search(query):
        raise ambiguous("The query string has a percent sign that no two hexadecimal digits follow.")
    pairs = []
    for part in query.split("&"):
        if part:
            name, _, value = part.partition("=")
            pairs.append((_encoded(name), _encoded(value)))
    pairs.sort()
    return pairs


def check_each_once(pairs: Pairs) -> None:
    """The order of two values of one name is not signed, and it is the order that says which of them counts."""
    if len({name for name, _ in pairs}) != len(pairs):
        raise ambiguous("The query string has a parameter more than once.")


def _encoded(text: str) -> str:
    if _IN_ORDER.fullmatch(text):
        return text
    return quote(unquote_to_bytes(text.replace("+", " ").encode("latin-1")), safe="-_.~")


def canonical_value(value: str) -> str:
    """Trimmed, and with one space for any white space, also between quotes: as botocore and the CRT do it."""
    if _UNUSUAL_SPACE.search(value):
        return _WHITE_SPACE.sub(" ", value).strip(" ")
    return value


def check_method(method: str) -> None:
    """Nothing but the parser of HTTP keeps line ends out of it."""
    if not method.isalpha():
        raise mismatch("The method of the request is none.")
