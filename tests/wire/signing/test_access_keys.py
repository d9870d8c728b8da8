"""Access keys: new ones, what they are limited to, what is kept of them, and that no secret shows anywhere."""

from __future__ import annotations

import pickle
import re
import secrets
import traceback
from dataclasses import replace
from fnmatch import fnmatchcase
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angelhair import limits
from angelhair.server.auth import AccessKey, Refused, SigningKeys, allowed, new_id, new_secret
from angelhair.server.auth.wildcards import matches
from tests.wire.signing.signers import ALICE, by_botocore, verified


def test_new_ids_and_secrets_have_their_forms() -> None:
    for _ in range(100):
        assert re.fullmatch("AHKI[A-Z2-7]{16}", new_id(secrets.token_bytes))
        assert re.fullmatch("[A-Za-z0-9+/]{40}", new_secret(secrets.token_bytes))


def test_new_ids_and_secrets_are_what_the_dice_say() -> None:
    assert new_id(Random(1).randbytes) == new_id(Random(1).randbytes) != new_id(Random(2).randbytes)
    assert new_secret(Random(1).randbytes) == new_secret(Random(1).randbytes) != new_secret(Random(2).randbytes)


def test_a_new_key_signs() -> None:
    key = AccessKey(new_id(secrets.token_bytes), new_secret(secrets.token_bytes), "1")
    assert verified(by_botocore(key=key), keys={key.id: key}).key == key


def test_no_secret_shows() -> None:
    shown = [repr(ALICE), str(ALICE), f"{[ALICE]!r}", repr(verified(by_botocore())), repr(SigningKeys())]
    try:
        verified(replace(by_botocore(body=b"x"), body=b"y"))
    except Refused as refused:
        shown += [repr(refused), *traceback.format_exception(refused)]
    assert not [text for text in shown if ALICE.secret in text or ALICE.secret_digest.hex() in text]


def test_keys_are_values() -> None:
    assert pickle.loads(pickle.dumps(ALICE)) == ALICE
    assert replace(ALICE, secret="another") != ALICE
    assert replace(ALICE, secret="another").secret_digest != ALICE.secret_digest


@pytest.mark.parametrize(("pattern", "name", "fits"), [
    ("orders", "orders", True), ("orders", "Orders", False), ("orders", "orders2", False), ("orders", "", False),
    ("*", "", True), ("*", "orders", True), ("orders*", "orders", True), ("orders*", "orders-eu", True),
    ("orders*", "my-orders", False), ("*.fifo", "a.fifo", True), ("*.fifo", ".fifo", True),
    ("*.fifo", "a.fifo2", False),
    ("a*b*c", "abc", True), ("a*b*c", "axxbyyc", True), ("a*b*c", "acb", False), ("ab*ba", "aba", False),
    ("ab*ba", "abba", True), ("**", "x", True), ("*a*", "bab", True), ("*aa*a", "aa", False), ("*aa*a", "aaa", True),
    ("a?c", "abc", False), ("a?c", "a?c", True), ("[ab]", "a", False), ("[ab]", "[ab]", True),
    ("", "", True), ("", "a", False),
])
def test_patterns(pattern: str, name: str, fits: bool) -> None:
    assert matches(pattern, name) is fits


@given(st.text("ab*", max_size=12), st.text("ab", max_size=16))
def test_patterns_fit_as_fnmatch_has_it(pattern: str, name: str) -> None:
    assert matches(pattern, name) is fnmatchcase(name, pattern)


def test_no_pattern_is_slow() -> None:
    assert not matches("*a" * 1_000 + "b", "a" * 2_000)


@pytest.mark.parametrize(("key", "action", "queue", "may"), [
    (ALICE, "SendMessage", "orders", True),
    (ALICE, "ListQueues", None, True),
    (replace(ALICE, enabled=False), "SendMessage", "orders", False),
    (replace(ALICE, queues=("orders*", "bills")), "SendMessage", "orders-eu", True),
    (replace(ALICE, queues=("orders*", "bills")), "SendMessage", "bills", True),
    (replace(ALICE, queues=("orders*", "bills")), "SendMessage", "bills2", False),
    (replace(ALICE, queues=("orders*",)), "ListQueues", None, False),
    (replace(ALICE, queues=("*",)), "ListQueues", None, True),
    (replace(ALICE, queues=()), "SendMessage", "orders", False),
    (replace(ALICE, actions=("SendMessage",)), "SendMessage", "orders", True),
    (replace(ALICE, actions=("SendMessage",)), "sendmessage", "orders", False),
    (replace(ALICE, actions=("SendMessage",)), "SendMessageBatch", "orders", False),
    (replace(ALICE, actions=("Send*",)), "SendMessage", "orders", False),
    (replace(ALICE, actions=("*",)), "PurgeQueue", "orders", True),
    (replace(ALICE, actions=()), "SendMessage", "orders", False),
    (replace(ALICE, queues=("orders",), actions=("SendMessage",)), "SendMessage", "bills", False),
])
def test_what_a_key_may_do(key: AccessKey, action: str, queue: str | None, may: bool) -> None:
    assert allowed(key, action, queue) is may


# --- signing keys that are kept ---------------------------------------------------------------------------------------


def test_only_what_was_right_is_kept() -> None:
    kept = SigningKeys()
    with pytest.raises(Refused):
        verified(by_botocore(key=replace(ALICE, secret="wrong")), kept=kept)
    assert len(kept) == 0
    for _ in range(3):
        verified(by_botocore(), kept=kept)
    assert len(kept) == 1


def test_a_changed_secret_is_in_force_at_once() -> None:
    kept = SigningKeys()
    renewed = replace(ALICE, secret="renewed")
    verified(by_botocore(), kept=kept)
    with pytest.raises(Refused):
        verified(by_botocore(), keys={ALICE.id: renewed}, kept=kept)
    assert verified(by_botocore(key=renewed), keys={ALICE.id: renewed}, kept=kept).key == renewed
    with pytest.raises(Refused):
        verified(by_botocore(key=renewed), kept=kept)


def test_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SIGNING_KEYS", 3)
    kept = SigningKeys()
    for number in range(10):
        assert verified(by_botocore(region=f"region-{number}"), kept=kept).region == f"region-{number}"
        assert len(kept) == min(number + 1, 3)
    assert verified(by_botocore(region="region-0"), kept=kept).region == "region-0"
