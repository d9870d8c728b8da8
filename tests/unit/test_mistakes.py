"""Mistakes of a store's caller: each is refused in words that name it, before any store sees it."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.mistakes import check_change, check_span, check_write
from angelhair.engine.schema import BODIES, STATES, WAKES
from angelhair.engine.store import Change, Partition, Row, RowChange, Span, Write

PLAIN, GUARDED, NAMED = Partition(BODIES, "p"), Partition(STATES, "p"), Partition(WAKES, "p")
TOO_LARGE = limits.INTEGER_LIMIT


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (Span(PLAIN, limit=0), "a limit of 0 rows asks for nothing"),
        (Span(PLAIN, "a"), "the keys of table bodies are int, not 'a'"),
        (Span(NAMED, None, 7), "the keys of table wakes are str, not 7"),
        (Span(PLAIN, 0, TOO_LARGE), "does not fit into 64 bits"),
        (Span(PLAIN, columns=("soul",)), "table bodies has no column 'soul'"),
        (Span(PLAIN, columns=("keyed", "body")), "of table bodies 'body' is read with its whole row, or not at all"),
    ],
)
def test_spans(span: Span, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_span(span)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (Write(GUARDED, []), "table states is only changed conditionally"),
        (Write(PLAIN, [Row(1, {"soul": 1})]), "table bodies has no column or flag 'soul'"),
        (Write(PLAIN, [Row(1, {"body": "text"})]), "bodies.body holds bytes, not 'text'"),
        (Write(PLAIN, [Row(1, {"enqueued_at": TOO_LARGE})]), "does not fit into 64 bits"),
        (Write(PLAIN, [Row(1, {"enqueued_at": True})]), "bodies.enqueued_at holds int, not True"),
        (Write(PLAIN, [], 0), "rows cannot live for 0 seconds"),
        (Write(PLAIN, [], limits.TTL_MAXIMUM_SECONDS + 1), "rows cannot live for"),
    ],
)
def test_writes(write: Write, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_write(write)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(PLAIN), "table bodies is only written blindly"),
        (Change(GUARDED, [RowChange(1, {}, {}), RowChange(1, {}, {})]), "names a key twice"),
        (Change(GUARDED, [RowChange("1", {}, {})]), "the keys of table states are int"),
        (Change(GUARDED, [RowChange(1, {"colour": 1}, {})]), "table states has no column or flag 'colour'"),
        (Change(GUARDED, [RowChange(1, {}, {"delivery": "one"})]), "states.delivery holds int, not 'one'"),
        (Change(GUARDED, expect_flags={"final": "yes"}), "states.final holds int, not 'yes'"),
        (Change(GUARDED, set_flags={"colour": 1}), "table states has no column or flag 'colour'"),
        (Change(GUARDED, ttl_seconds=-1), "rows cannot live for -1 seconds"),
    ],
)
def test_changes(change: Change, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_change(change)


def test_what_is_no_mistake() -> None:
    check_span(Span(PLAIN, -TOO_LARGE, TOO_LARGE - 1, 1, ("enqueued_at",)))
    check_span(Span(GUARDED, columns=("body",)))
    check_span(Span(NAMED, "a", "b"))
    check_write(Write(PLAIN, [Row(1, {"body": b"", "attributes": None})], limits.TTL_MAXIMUM_SECONDS))
    rows = [RowChange(1, {"delivery": None}, {"delivery": 1}), RowChange(2, {}, None)]
    check_change(Change(GUARDED, rows, {"final": None}, {"final": 1}, 1))
