"""A frame to the writer process that cannot be made must not move everybody's answers up by one place.

Naive: the calls stand in line for their answers before their frame is made. When making it fails (it is too large, or
memory is), nothing was sent, and the next call's answer confirms them: a put that never reached the file.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from angelhair.stores.sqlite import wire
from tests.unit.sqlite.tools import keys, one, opened


@pytest.mark.parametrize("error", [OverflowError, MemoryError])
def test_a_frame_that_cannot_be_made_does_not_shift_answers(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    real = wire.framed

    def framed(payload: bytes) -> bytes:
        if len(payload) > 1_000_000:  # in place of 4 GiB, which this machine does not have
            raise error("too big")
        return real(payload)

    async def story() -> None:
        async with opened(tmp_path / "a.db", writer="process") as store:
            assert await store.write([one(1)]) == [None]
            monkeypatch.setattr(wire, "framed", framed)
            huge = asyncio.create_task(store.write([one(2, 2_000_000)]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            later = asyncio.create_task(store.write([one(3)]))
            await asyncio.wait([huge, later], timeout=30)
            stored = await keys(store)
            said = huge.result() if huge.done() and huge.exception() is None else None
            assert not (said == [None] and 2 not in stored), "confirmed, and not in the file: LOST"
            assert later.done(), "an answer went to another caller: this one waits for ever"
            later.cancel()

    asyncio.run(asyncio.wait_for(story(), 60))
