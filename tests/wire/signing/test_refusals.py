"""How requests are refused: Amazon's codes, statuses and words, and nothing of a secret in any of them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from angelhair import limits
from angelhair.server.auth import AccessKey, Refused, SigningKeys, not_allowed, verify
from angelhair.server.http.messages import Request
from tests.wire.signing.mutating import Sent, edit
from tests.wire.signing.signers import (
    ALICE,
    GONE,
    KEYS,
    NOW,
    SERVICES,
    by_botocore,
    by_runtime,
    read,
    with_header,
)


def refusal(
    request: Request,
    now_seconds: float = NOW,
    services: AbstractSet[str] = SERVICES,
    regions: AbstractSet[str] | None = None,
) -> Refused:
    with pytest.raises(Refused) as caught:
        verify(request, KEYS.get, now_seconds, services, SigningKeys(), regions)
    assert ALICE.secret not in str(caught.value)
    return caught.value


def edited(name: str, value: str | None, expires: int | None = None) -> Request:
    request = by_botocore("GET", "/?Action=ListQueues", expires=expires)
    sent = edit(Sent(request, presigned=expires is not None), name, value)
    assert sent is not None
    return sent.request


def test_no_signature() -> None:
    refused = refusal(read("GET", "/", [("Host", "x")], b""))
    assert (refused.code, refused.status) == ("MissingAuthenticationToken", 403)
    assert refused.message == "Request is missing Authentication Token"


@pytest.mark.parametrize(("name", "words"), [
    ("Credential", "Authorization header requires 'Credential' parameter."),
    ("SignedHeaders", "Authorization header requires 'SignedHeaders' parameter."),
    ("Signature", "Authorization header requires 'Signature' parameter."),
    ("Date", "Authorization header requires existence of a 'X-Amz-Date' header."),
])
def test_a_part_is_missing(name: str, words: str) -> None:
    refused = refusal(edited(name, None))
    assert (refused.code, refused.status, refused.message) == ("IncompleteSignature", 400, words)


@pytest.mark.parametrize("name", ["Algorithm", "Credential", "Date", "Expires", "SignedHeaders"])
def test_a_part_of_a_presigned_url_is_missing(name: str) -> None:
    refused = refusal(edited(name, None, expires=60))
    assert (refused.code, refused.status) == ("IncompleteSignature", 400)
    assert refused.message == f"AWS query-string parameters must include 'X-Amz-{name}'."


@pytest.mark.parametrize("expires", [None, 60])
@pytest.mark.parametrize(("name", "value", "words"), [
    ("Algorithm", "AWS4-HMAC-SHA1", "Unsupported AWS 'algorithm' (only AWS4-HMAC-SHA256 for now)."),
    ("Date", "2026-11-16", "Date must be in ISO-8601 'basic format', such as 20150830T123600Z."),
    ("Signature", "A" * 64, "Signature must be 64 hexadecimal digits in lower case."),
    ("SignedHeaders", "x;host", "SignedHeaders must be names in lower case, sorted, each once, with ';' between them."),
    (
        "Credential", "a/b/c/d",
        "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term.",
    ),
])
def test_a_part_is_not_of_its_form(name: str, value: str, words: str, expires: int | None) -> None:
    refused = refusal(edited(name, value, expires))
    assert (refused.code, refused.status, refused.message) == ("IncompleteSignature", 400, words)


@pytest.mark.parametrize("request_", [
    by_botocore(key=AccessKey("AHKINOBODY0000000000", "x", "1")),
    by_botocore(key=GONE),
    with_header(by_botocore(), "x-amz-security-token", "token"),
    by_botocore("GET", "/?X-Amz-Security-Token=token", expires=60),
    by_botocore(headers=[("X-Amz-Security-Token", "token")]),
])
def test_keys_that_are_unknown_or_disabled_or_temporary(request_: Request) -> None:
    refused = refusal(request_)
    assert (refused.code, refused.status) == ("InvalidClientTokenId", 403)
    assert refused.message == "The security token included in the request is invalid."


@pytest.mark.parametrize(("now_seconds", "words"), [
    (
        NOW + 901,
        "Signature expired: 20261116T120000Z is now earlier than 20261116T120001Z (20261116T121501Z - 15 min.)",
    ),
    (
        NOW - 901,
        "Signature not yet current: 20261116T120000Z is still later than 20261116T115959Z (20261116T114459Z + 15 min.)",
    ),
])
def test_times_out_of_the_window(now_seconds: int, words: str) -> None:
    refused = refusal(by_botocore(), now_seconds)
    assert (refused.code, refused.status, refused.message) == ("SignatureDoesNotMatch", 403, words)


@pytest.mark.parametrize("now_seconds", [NOW - 900, NOW, NOW + 900])
def test_times_at_the_ends_of_the_window(now_seconds: int) -> None:
    assert verify(by_botocore(), KEYS.get, now_seconds, SERVICES, SigningKeys()).key == ALICE


@pytest.mark.parametrize("expires", [1, 60, 604_800])
def test_a_presigned_url_is_good_until_it_expires(expires: int) -> None:
    request = by_runtime("GET", expires=expires)
    for now_seconds in (NOW - 900, NOW, NOW + expires):
        assert verify(request, KEYS.get, now_seconds, SERVICES, SigningKeys()).key == ALICE
    assert refusal(request, NOW + expires + 1).message.startswith("Signature expired: 20261116T120000Z is now earlier")
    assert refusal(request, NOW - 901).message.startswith("Signature not yet current: 20261116T120000Z")


@pytest.mark.parametrize("expires", [0, limits.PRESIGNED_SECONDS + 1, 999_999, 10**12, -1])
def test_a_presigned_url_that_was_signed_for_too_long_or_too_short(expires: int) -> None:
    refused = refusal(by_botocore("GET", expires=expires))
    assert (refused.code, refused.message) == (
        "IncompleteSignature", "X-Amz-Expires must be a number of seconds from 1 to 604800.",
    )


@pytest.mark.parametrize(("request_", "words"), [
    (by_botocore(service="s3"), "Credential should be scoped to correct service: 'sns, sqs, sts'."),
    (by_botocore(region="US"), "Credential should be scoped to a valid region."),
    (by_botocore(region="x" * 65), "Credential should be scoped to a valid region."),
])
def test_scopes_that_were_signed_for_somebody_else(request_: Request, words: str) -> None:
    refused = refusal(request_)
    assert (refused.code, refused.message) == ("SignatureDoesNotMatch", words)


def test_a_door_takes_its_own_service_and_regions_only() -> None:
    request = by_botocore(service="sns", region="eu-west-1")
    assert refusal(request, services={"sqs"}).message == "Credential should be scoped to correct service: 'sqs'."
    words = "Credential should be scoped to a valid region, not 'eu-west-1'."
    assert refusal(request, regions={"us-east-1"}).message == words
    assert verify(request, KEYS.get, NOW, {"sns"}, SigningKeys(), {"eu-west-1"}).region == "eu-west-1"


def test_a_scope_of_another_day_than_the_date() -> None:
    credential = f"{ALICE.id}/20261115/us-east-1/sqs/aws4_request"
    assert refusal(edited("Credential", credential)).message == (
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
        "the date is 20261116, from '20261116T120000Z'."
    )


def test_host_is_signed() -> None:
    words = "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
    assert refusal(edited("SignedHeaders", "x-amz-date")).message == words


def test_headers_that_should_be_signed() -> None:
    refused = refusal(with_header(by_botocore(), "x-amz-target", "AmazonSQS.DeleteQueue"))
    assert (refused.code, refused.status) == ("AccessDenied", 403)
    assert refused.message.startswith("There were headers present in the request which were not signed")


@pytest.mark.parametrize("said", ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "0" * 64])
def test_a_body_that_was_not_signed_is_refused_although_the_signature_is_right(said: str) -> None:
    refused = refusal(by_botocore(headers=[("X-Amz-Content-SHA256", said)], body=b"body"))
    assert refused.message == "The provided 'x-amz-content-sha256' header does not match what was computed."


@pytest.mark.parametrize("query", ["a=1&a=2", "a=1&a=1", "a&a", "a=1&%61=2", "Action=x&Action=y"])
@pytest.mark.parametrize("expires", [None, 60])
def test_a_parameter_twice_is_refused_although_the_signature_is_right(query: str, expires: int | None) -> None:
    """Sorted as they are, the signature would be right for both orders, and a door would act on one of the values."""
    refused = refusal(by_runtime("GET", f"/?{query}", expires=expires))
    assert (refused.code, refused.status) == ("InvalidQueryParameter", 400)


def test_more_parameters_than_anybody_needs() -> None:
    query = "&".join(f"a{number}=1" for number in range(limits.QUERY_PARAMETERS))
    assert verify(by_runtime("GET", f"/?{query}"), KEYS.get, NOW, SERVICES, SigningKeys()).key == ALICE
    refused = refusal(by_runtime("GET", f"/?{query}&b=1"))
    assert (refused.code, refused.message) == (
        "InvalidQueryParameter", "The query string has more than 500 parameters.",
    )


def test_a_wrong_signature() -> None:
    refused = refusal(by_botocore(key=AccessKey(ALICE.id, "another secret", ALICE.account)))
    assert (refused.code, refused.status) == ("SignatureDoesNotMatch", 403)
    assert refused.message.startswith("The request signature we calculated does not match the signature you provided.")


def test_a_key_that_is_not_for_this() -> None:
    refused = not_allowed("111111111111", ALICE.id, "sqs:SendMessage")
    assert (refused.code, refused.status) == ("AccessDenied", 403)
    assert str(refused).endswith("is not authorized to perform: sqs:SendMessage")
