"""Names that rest: for a while after a queue was deleted nobody takes its name, if it was told so. What a door asks for
that wants it; the engine itself frees a name at once."""

from __future__ import annotations

from angelhair.engine import places
from angelhair.engine.settling import change_one, expect_decided
from angelhair.engine.store import Change, RowChange, Span, Store

RESTING = "resting"


async def let_rest(store: Store, account: str, name: str, seconds: int) -> None:
    """Before the queue is deleted: nobody can come in between."""
    until_ms = await store.time_ms() + seconds * 1000
    row = RowChange(name, {}, {"status": RESTING, "expires_at": until_ms})
    change = Change(places.resting_names(account), [row], ttl_seconds=max(1, seconds))
    expect_decided(await change_one(store, change))


async def rests(store: Store, account: str, name: str) -> bool:
    (found,) = await store.read([Span(places.resting_names(account), name, name)])
    until_ms = found.rows[0].values.get("expires_at") if found.rows else None
    return isinstance(until_ms, int) and until_ms > await store.time_ms()
