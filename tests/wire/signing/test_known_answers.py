"""Answers that Amazon has published: the requests and signatures of its Signature Version 4 examples, key by key."""

from __future__ import annotations

import pytest

from angelhair.server.auth import AccessKey, SigningKeys, verify
from angelhair.server.auth.canonical import canonical_pairs, canonical_request, normal_path
from angelhair.server.auth.signing import signature, signing_key
from angelhair.server.auth.times import seconds_of
from tests.wire.signing.signers import read

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
KEY = AccessKey("AKIDEXAMPLE", SECRET, "123456789012")
STAMP, DATE, REGION = "20150830T123600Z", "20150830", "us-east-1"
NOW = 1_440_938_160
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
HEADERS = [("Host", "example.amazonaws.com"), ("X-Amz-Date", STAMP)]


def test_the_signing_key_of_the_documentation() -> None:
    made = signing_key(SECRET, DATE, REGION, "iam")
    assert made.hex() == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


def test_the_request_of_the_documentation_step_by_step() -> None:
    headers = {
        "content-type": "application/x-www-form-urlencoded; charset=utf-8", "host": "iam.amazonaws.com",
        "x-amz-date": STAMP,
    }
    pairs = canonical_pairs("Action=ListUsers&Version=2010-05-08")
    canonical = canonical_request("GET", "/", pairs, headers, sorted(headers), EMPTY)
    assert canonical.decode().splitlines() == [
        "GET", "/", "Action=ListUsers&Version=2010-05-08",
        "content-type:application/x-www-form-urlencoded; charset=utf-8", "host:iam.amazonaws.com",
        f"x-amz-date:{STAMP}", "", "content-type;host;x-amz-date", EMPTY,
    ]
    made = signature(signing_key(SECRET, DATE, REGION, "iam"), STAMP, DATE, REGION, "iam", canonical)
    assert made == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"


# Name, method, target, further headers, body, signature: from Amazon's test suite for this key, region and day.
PUBLISHED = [
    ("get-vanilla", "GET", "/", [], b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    ("post-vanilla", "POST", "/", [], b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    (
        "get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", [], b"",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    (
        "get-vanilla-query-unreserved", "GET",
        "/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        "=-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", [], b"",
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
    ),
    (
        "get-header-value-trim", "GET", "/", [("My-Header1", " value1"), ("My-Header2", ' "a   b   c"')], b"",
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ),
    (
        "get-header-key-duplicate", "GET", "/",
        [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")], b"",
        "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
    ),
    (
        "post-x-www-form-urlencoded", "POST", "/", [("Content-Type", "application/x-www-form-urlencoded")],
        b"Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ),
]


@pytest.mark.parametrize(("method", "target", "further", "body", "expected"), [
    pytest.param(*answer[1:], id=answer[0]) for answer in PUBLISHED
])
def test_a_published_signature_is_right(
    method: str, target: str, further: list[tuple[str, str]], body: bytes, expected: str
) -> None:
    headers = [*HEADERS, *further]
    names = ";".join(sorted({name.lower() for name, _ in headers}))
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={KEY.id}/{DATE}/{REGION}/service/aws4_request, SignedHeaders={names}, "
        f"Signature={expected}"
    )
    request = read(method, target, [*headers, ("Authorization", authorization)], body)
    identity = verify(request, {KEY.id: KEY}.get, NOW, {"service"}, SigningKeys())
    assert (identity.access_key_id, identity.account) == (KEY.id, "123456789012")
    assert (identity.region, identity.service, identity.date) == (REGION, "service", DATE)


@pytest.mark.parametrize(("path", "normal"), [
    ("/", "/"), ("//", "/"), ("/./", "/"), ("/..", "/"), ("/foo/bar/../..", "/"), ("/foo/..", "/"),
    ("/./foo", "/foo"), ("//foo//", "/foo/"), ("/a/./b/../c", "/a/c"), ("/a/b/..", "/a"), ("", "/"), ("/...", "/..."),
])
def test_paths_are_normal_without_dots_and_empty_segments(path: str, normal: str) -> None:
    assert normal_path(path) == normal


@pytest.mark.parametrize(("query", "expected"), [
    ("b=2&a=1", [("a", "1"), ("b", "2")]),
    ("a=2&a=1", [("a", "1"), ("a", "2")]),
    ("a-=1&a=2&A=3", [("A", "3"), ("a", "2"), ("a-", "1")]),
    ("valueless", [("valueless", "")]),
    ("=", [("", "")]),
    ("a=b=c", [("a", "b%3Dc")]),
    ("&a=1&&b=2&", [("a", "1"), ("b", "2")]),
    ("a=x+y", [("a", "x%20y")]),
    ("a=x%2By", [("a", "x%2By")]),
    ("a=%7e%2f%41", [("a", "~%2FA")]),
    ("a=\xc3\xa9", [("a", "%C3%A9")]),
    ("a=!*'()", [("a", "%21%2A%27%28%29")]),
])
def test_queries_have_one_form(query: str, expected: list[tuple[str, str]]) -> None:
    assert canonical_pairs(query) == expected


@pytest.mark.parametrize(("stamp", "seconds"), [
    (STAMP, NOW), ("19700101T000000Z", 0), ("20240229T235959Z", 1_709_251_199), ("20230229T000000Z", None),
    ("20150830T123660Z", None), ("20150830T243600Z", None), ("20151330T123600Z", None), ("00000101T000000Z", None),
    ("20150830T123600", None), ("20150830T123600z", None), (" 20150830T123600Z", None), ("20150830T123600Z\n", None),
    ("٢٠١٥٠٨٣٠T123600Z", None), ("", None),
])
def test_times(stamp: str, seconds: int | None) -> None:
    assert seconds_of(stamp) == seconds
