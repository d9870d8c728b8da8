"""What is taken out of log lines: every receipt that this release makes, and what a request brought."""

from __future__ import annotations

import random
import traceback

import msgspec
import pytest

from angelhair import limits
from angelhair.engine import receipts
from angelhair.server.http import Request
from angelhair.server.observing.hiding import without_body, without_receipts

SEED = 20_261_115


def test_every_receipt_is_found() -> None:
    chance = random.Random(SEED)
    for _ in range(2_000):
        receipt = receipts.encode(
            chance.randbytes(16).hex(), chance.randbytes(16),
            chance.randrange(1 << 16), chance.randrange(1 << 62), chance.randrange(1 << 31),
        )
        for text in (receipt, f"/queues/q/message/{receipt}", f"['{receipt}']", f"{receipt},{receipt}"):
            assert receipt not in without_receipts(text)
            assert "[receipt]" in without_receipts(text)


@pytest.mark.parametrize(
    "text",
    [
        "request 3f2a9c0d1e4b5a69788796a5b4c3d2e1 took 4 ms",
        "queue a-queue-with-a-rather-long-name-of-its-own.v2",
        "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ],
)
def test_other_long_words_stay(text: str) -> None:
    assert without_receipts(text) == text


@pytest.mark.parametrize(
    "body",
    [b"pepper and salt", "süß & sauer".encode(), b'{"body": "pepper", "more": ["salt, coarse"]}',
     b"\xff\xfe pepper \x00", b"line\nbreak 'and' \"quotes\" \\", b"[" * 5_000, b'["' + b"\\ud83d" + b' half"]'],
)
def test_bodies_are_found_however_they_are_spelled(body: bytes) -> None:
    request = Request("PUT", "/", "", {}, body, "abc-1", "", False, True)
    texts = [f"met {body!r}", f"met {body.decode('utf-8', 'backslashreplace')!r}", f"met {body.decode('latin-1')}"]
    for text in texts:
        hidden = without_body(text, request)
        assert "[body]" in hidden
        assert hidden.startswith("met ")
        for word in ("pepper", "salt", "sauer", "quotes", "half"):
            assert word not in hidden


def test_words_inside_of_json_are_found_on_their_own() -> None:
    body = b'[{"body": "pepper corns", "delay": 3}, {"deep": {"er": ["sea salt"]}}, "no"]'
    request = Request("PUT", "/", "", {}, body, "abc-1", "", False, True)
    text = "no way: 'pepper corns' is not a delay, nor is sea salt"
    assert without_body(text, request) == "no way: '[body]' is not a delay, nor is [body]"


def test_with_a_huge_body_the_text_of_an_error_is_left_out_and_its_stack_is_not() -> None:
    request = Request("PUT", "/", "", {}, b"pepper " * limits.LOG_HIDE_BYTES, "abc-1", "", False, True)
    try:
        try:
            raise ValueError("pepper\nand more pepper")
        except ValueError as cause:
            raise msgspec.ValidationError("pepper at `$.body`") from cause
    except msgspec.ValidationError:
        stack = traceback.format_exc()
    hidden = without_body(stack, request)
    assert "pepper" not in hidden.replace('raise ValueError("pepper', "").replace("and more pepper", "", 1).replace(
        'ValidationError("pepper at', "")
    assert hidden.splitlines()[0] == "Traceback (most recent call last):"
    assert "ValueError: [text left out]" in hidden
    assert hidden.splitlines()[-1] == "msgspec.ValidationError: [text left out]"
    assert "The above exception was the direct cause" in hidden
    assert hidden.count("test_hiding.py") == stack.count("test_hiding.py")


def test_an_empty_body_hides_nothing() -> None:
    request = Request("GET", "/", "", {}, b"", "abc-1", "", False, True)
    assert without_body("as it was", request) == "as it was"
