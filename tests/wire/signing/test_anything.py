"""Whatever comes in, it is verified or refused: nothing else is ever raised, and nothing unsigned is let in."""

from __future__ import annotations

import string
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from angelhair.server.auth import AccessKey, Refused
from angelhair.server.auth.canonical import canonical_pairs, canonical_value, normal_path
from angelhair.server.http.messages import Request
from tests.wire.signing.mutating import Sent, originals
from tests.wire.signing.signers import HOST, NOW, STAMP, by_botocore, by_runtime, verified

ANYTHING = st.text(max_size=60)
BYTES = st.text(st.characters(max_codepoint=255), max_size=60)
NAMES = st.one_of(
    st.sampled_from([
        "authorization", "host", "x-amz-date", "x-amz-content-sha256", "x-amz-target", "x-amz-security-token", "",
    ]),
    BYTES,
)
CREDENTIALS = st.lists(
    st.one_of(st.sampled_from(["AHKIALICE00000000000", "20261116", "us-east-1", "sqs", "aws4_request", ""]), ANYTHING),
    max_size=7,
).map("/".join)
AUTHORIZATIONS = st.builds(
    lambda algorithm, credential, names, signature, comma: (
        f"{algorithm} Credential={credential}{comma}SignedHeaders={names}{comma}Signature={signature}"
    ),
    st.one_of(st.just("AWS4-HMAC-SHA256"), ANYTHING),
    CREDENTIALS,
    st.one_of(st.sampled_from(["host;x-amz-date", "host", ""]), ANYTHING),
    st.one_of(st.text(string.hexdigits, min_size=64, max_size=64), st.just("0" * 64), ANYTHING),
    st.sampled_from([", ", ",", ";", ""]),
)
VALUES = st.one_of(AUTHORIZATIONS, st.sampled_from([STAMP, HOST, "UNSIGNED-PAYLOAD"]), ANYTHING)
PARAMETERS = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from([
                "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders",
                "X-Amz-Signature", "X-Amz-Security-Token", "Action",
            ]),
            ANYTHING,
        ),
        st.one_of(st.sampled_from(["AWS4-HMAC-SHA256", STAMP, "60", "host", "0" * 64]), CREDENTIALS, ANYTHING),
    ),
    max_size=9,
)
QUERIES = st.one_of(ANYTHING, PARAMETERS.map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)))
REQUESTS = st.builds(
    lambda method, path, query, headers, body: Request(method, path, query, headers, body, "id", "", False, True),
    st.one_of(st.sampled_from(["GET", "POST"]), ANYTHING), st.one_of(st.just("/"), ANYTHING), QUERIES,
    st.dictionaries(NAMES, VALUES, max_size=8), st.binary(max_size=40),
)


@settings(max_examples=1_500, deadline=None)
@given(REQUESTS, st.floats(0, 4e9))
def test_any_request_is_refused(request: Request, now_seconds: float) -> None:
    """Nothing here knows a secret, so nothing is verified."""
    with pytest.raises(Refused):
        verified(request, now_seconds)


ORIGINALS = originals()


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(ORIGINALS), st.sampled_from(["method", "path", "query", "body"]), st.data())
def test_a_signed_request_with_anything_in_place_of_one_part(original: Sent, part: str, data: st.DataObject) -> None:
    request = original.request
    instead: Any = data.draw(st.binary(max_size=40) if part == "body" else ANYTHING)
    spoiled = replace(request, **{part: instead})
    if part == "path" and _same_path(spoiled.path, request.path):
        return
    if part == "query" and _pairs(spoiled.query) == _pairs(request.query):
        return
    if spoiled != request:
        with pytest.raises(Refused):
            verified(spoiled)


def _same_path(one: str, other: str) -> bool:
    return normal_path(one) == normal_path(other)


def _pairs(query: str) -> object:
    try:
        return canonical_pairs(query)
    except (Refused, UnicodeEncodeError):
        return None


def is_ordinary(name: str) -> bool:
    """It says nothing about a signature."""
    return not name.startswith("X-Amz-")


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.text(min_size=1, max_size=20).filter(is_ordinary), st.text(max_size=30), max_size=5),
    st.binary(max_size=300), st.sampled_from(["sqs", "sns"]),
    st.text(string.printable, min_size=1, max_size=40), st.sampled_from([None, 60]),
)
def test_whatever_botocore_signs_is_verified(
    params: dict[str, str], body: bytes, service: str, secret: str, expires: int | None
) -> None:
    key = AccessKey("AHKIANYKEY0000000000", secret, "1")
    request = by_botocore(
        "POST", key=key, params=params, body=b"" if expires else body, service=service, expires=expires
    )
    assert verified(request, keys={key.id: key}).service == service


VISIBLE = st.text("abc XYZ019,;=\"' \t", max_size=30)


@settings(max_examples=300, deadline=None)
@given(st.lists(VISIBLE, min_size=1, max_size=3), st.binary(max_size=300), st.sampled_from([None, 60]))
def test_whatever_the_runtime_signs_is_verified(values: list[str], body: bytes, expires: int | None) -> None:
    request = by_runtime(headers=[("Other", value) for value in values], body=body, expires=expires)
    assert verified(request, NOW).service == "sqs"


@given(BYTES)
def test_the_one_form_of_a_header_is_its_own(value: str) -> None:
    once = canonical_value(value)
    assert canonical_value(once) == once
    assert "  " not in once
    assert "\n" not in once


@given(st.text(st.characters(max_codepoint=255, exclude_characters="%"), max_size=60))
def test_the_one_form_of_a_query_is_its_own(query: str) -> None:
    once = canonical_pairs(query)
    assert canonical_pairs("&".join(f"{name}={value}" for name, value in once)) == once
    assert once == sorted(once)


@given(st.lists(st.sampled_from(["a", "b", ".", "..", "", "...", "%2e"]), max_size=8).map("/".join))
def test_the_one_form_of_a_path_is_its_own(path: str) -> None:
    once = normal_path(f"/{path}")
    assert normal_path(once) == once
    assert not {".", ".."} & set(once.split("/"))
