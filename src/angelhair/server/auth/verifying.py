"""Whether a request was signed by the key that it names: all that has to hold, in the order in which it is asked.

Believed is nothing: the hash of the body is computed whatever x-amz-content-sha256 says, so a body that was not signed
(UNSIGNED-PAYLOAD) is refused; and the time, the scope and the list of signed headers are judged before any key is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

from angelhair import limits
from angelhair.server.auth.access_keys import AccessKey
from angelhair.server.auth.canonical import canonical_pairs, canonical_request, check_each_once, check_method
from angelhair.server.auth.claims import TERMINATOR, Claim, claim_of
from angelhair.server.auth.refusals import incomplete, mismatch, unknown_key, unsigned_headers, wrong_signature
from angelhair.server.auth.signing import SigningKeys, scope_of, signature, signing_key
from angelhair.server.auth.times import seconds_of, stamp_of
from angelhair.server.http.messages import Request

_ID = re.compile("[A-Za-z0-9_-]+")
_REGION = re.compile("[a-z0-9-]+")
_AMAZON = "x-amz-"
"""How the names of those headers begin that services act on; every SDK signs all of them."""
_BODY_DIGEST = "x-amz-content-sha256"


class Identity(NamedTuple):
    """Who signed, and for what."""

    key: AccessKey
    region: str
    service: str
    date: str
    """The day of the scope, as YYYYMMDD."""

    @property
    def access_key_id(self) -> str:
        return self.key.id

    @property
    def account(self) -> str:
        return self.key.account


def verify(
    request: Request,
    find_key: Callable[[str], AccessKey | None],
    now_seconds: float,
    services: AbstractSet[str],
    signing_keys: SigningKeys,
    regions: AbstractSet[str] | None = None,
) -> Identity:
    """Who signed a request to a door that is one of `services`, such as {"sqs"}, in one of `regions`, or in any.

    Raises `Refused`, and nothing else. Sets, because a text has every part of itself in it: "" is in "sqs".
    """
    headers = request.headers
    check_method(request.method)
    try:
        pairs = canonical_pairs(request.query) if request.query else []
        if pairs:
            check_each_once(pairs)
        claim, pairs = claim_of(headers, pairs)
        key = _key_of(claim.access_key_id, find_key)
        _check_scope(claim, services, regions)
        _check_time(claim, now_seconds)
        _check_headers(claim, headers)
        body_digest = _body_digest(request)
        canonical = canonical_request(request.method, request.path, pairs, headers, claim.signed, body_digest)
    except UnicodeEncodeError:
        # No byte of a request becomes such a character, so nobody has signed it.
        raise wrong_signature() from None
    scope = scope_of(key, claim.date, claim.region, claim.service)
    kept = signing_keys.find(scope)
    made = kept or signing_key(key.secret, claim.date, claim.region, claim.service)
    if not compare_digest(signature(made, claim.stamp, *scope[2:], canonical), claim.signature):
        raise wrong_signature()
    if kept is None:
        signing_keys.keep(scope, made)
    return Identity(key, claim.region, claim.service, claim.date)


def _key_of(access_key_id: str, find_key: Callable[[str], AccessKey | None]) -> AccessKey:
    if len(access_key_id) > limits.ACCESS_KEY_ID_LENGTH or _ID.fullmatch(access_key_id) is None:
        raise unknown_key()
    key = find_key(access_key_id)
    if key is None or not key.enabled or key.id != access_key_id:
        raise unknown_key(access_key_id)
    return key


def _check_scope(claim: Claim, services: AbstractSet[str], regions: AbstractSet[str] | None) -> None:
    if claim.terminator != TERMINATOR:
        raise mismatch(f"Credential should be scoped with a valid terminator: '{TERMINATOR}'.")
    if claim.service not in services:
        raise mismatch(f"Credential should be scoped to correct service: '{', '.join(sorted(services))}'.")
    region = claim.region
    if len(region) > limits.REGION_LENGTH or _REGION.fullmatch(region) is None:
        raise mismatch("Credential should be scoped to a valid region.")
    if regions is not None and region not in regions:
        raise mismatch(f"Credential should be scoped to a valid region, not '{region}'.")


def _check_time(claim: Claim, now_seconds: float) -> None:
    stamp, skew = claim.stamp, limits.SIGNATURE_SKEW_SECONDS
    signed_seconds = seconds_of(stamp)
    if signed_seconds is None:
        raise incomplete("Date must be in ISO-8601 'basic format', such as 20150830T123600Z.")
    if claim.date != stamp[:8]:
        raise mismatch(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"the date is {stamp[:8]}, from '{stamp}'."
        )
    if signed_seconds > now_seconds + skew:
        latest, now = stamp_of(now_seconds + skew), stamp_of(now_seconds)
        raise mismatch(f"Signature not yet current: {stamp} is still later than {latest} ({now} + {skew // 60} min.)")
    valid_seconds = skew if claim.expires_seconds is None else claim.expires_seconds
    if signed_seconds < now_seconds - valid_seconds:
        earliest, now = stamp_of(now_seconds - valid_seconds), stamp_of(now_seconds)
        length = f"{skew // 60} min." if claim.expires_seconds is None else f"{valid_seconds} s"
        raise mismatch(f"Signature expired: {stamp} is now earlier than {earliest} ({now} - {length})")


def _check_headers(claim: Claim, headers: Mapping[str, str]) -> None:
    signed = claim.signed
    if "host" not in signed:
        raise mismatch("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
    for name in signed:
        if name not in headers:
            raise mismatch("A header that is said to be signed is not in the request.")
    unsigned = [name for name in headers if name.startswith(_AMAZON) and name not in signed]
    if unsigned:
        raise unsigned_headers(unsigned)


def _body_digest(request: Request) -> str:
    computed = sha256(request.body).hexdigest()
    if request.headers.get(_BODY_DIGEST, computed) != computed:
        raise mismatch(f"The provided '{_BODY_DIGEST}' header does not match what was computed.")
    return computed
