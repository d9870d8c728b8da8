"""A verifier without one of its checks accepts some mutation: so the check is needed, and the mutations have teeth."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import pytest

from angelhair.server.auth import AccessKey, Refused, SigningKeys, canonical, verifying
from angelhair.server.http.messages import Request
from tests.wire.signing import kinds_of_claim, kinds_of_message  # noqa: F401 - they fill the table of kinds
from tests.wire.signing.mutating import KINDS, originals
from tests.wire.signing.signers import verified

TIMES = 20


def is_accepted(name: str) -> bool:
    [kind] = [kind for kind in KINDS if kind.name == name]
    dice, kept = Random(name), SigningKeys()
    for original in originals():
        for _ in range(TIMES):
            spoiled = kind.apply(dice, original)
            try:
                if spoiled is not None and verified(spoiled.request, spoiled.now_seconds, kept=kept):
                    return True
            except Refused:
                pass
    return False


def no_check(*_: Any) -> None:
    pass


def decoded_path(path: str) -> str:
    return quote(unquote_to_bytes(path.encode("latin-1")), safe="/~")


def plus_stays_plus(text: str) -> str:
    return quote(unquote_to_bytes(text.encode("latin-1")), safe="-_.~")


def any_white_space(value: str) -> str:
    return " ".join(value.split())


def believed_digest(request: Request) -> str:
    return request.headers.get("x-amz-content-sha256", "")


def any_key(access_key_id: str, find_key: Callable[[str], AccessKey]) -> AccessKey:
    return find_key(access_key_id)


def first_digits(one: str, other: str) -> bool:
    return one[:8] == other[:8]


@pytest.mark.parametrize(("module", "check", "instead", "kind"), [
    (verifying, "_check_time", no_check, "too_late"),
    (verifying, "_check_time", no_check, "too_early"),
    (verifying, "_check_headers", no_check, "amazon_header_added"),
    (verifying, "_check_headers", no_check, "target_added"),
    (verifying, "_body_digest", believed_digest, "body_bit_flipped"),
    (verifying, "_key_of", any_key, "key_that_is_disabled"),
    (verifying, "compare_digest", first_digits, "signature_bit_flipped"),
    (canonical, "canonical_path", decoded_path, "path_letter_escaped"),
    (canonical, "_encoded", plus_stays_plus, "query_plus_sign_unescaped"),
    (canonical, "canonical_value", any_white_space, "header_with_a_look_alike"),
    (canonical, "canonical_value", str.lower, "header_in_the_other_case"),
])
def test_without_a_check_a_mutation_is_accepted(
    module: Any, check: str, instead: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_accepted(kind)
    monkeypatch.setattr(module, check, instead)
    assert is_accepted(kind)
