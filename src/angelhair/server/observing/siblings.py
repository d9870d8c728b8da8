"""The figures of the other processes of the same server, fetched over Unix sockets in a directory of theirs.

Each process listens in that directory under its number. Who connects is sent the figures and nothing is asked of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from angelhair import limits

_log = logging.getLogger(__name__)


class _Family(msgspec.Struct, array_like=True):
    name: str
    documentation: str
    kind: str
    samples: list[tuple[str, dict[str, str], float]]


_decoder = msgspec.msgpack.Decoder(list[_Family])


class Siblings:
    """To be made inside a running loop. `refresh` runs on the loop before the figures are collected."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        worker: int,
        workers: int,
        figures: Collector,
        refresh: Callable[[], None],
    ) -> None:
        self._directory = Path(directory)
        self._worker = worker
        self._workers = workers
        self._figures = figures
        self._refresh = refresh
        self._server: asyncio.Server | None = None
        self._telling: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        place = self._place(self._worker)
        place.unlink(missing_ok=True)  # of a process that died in our place
        self._server = await asyncio.start_unix_server(self._met, place)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await asyncio.gather(*self._telling, return_exceptions=True)
            self._place(self._worker).unlink(missing_ok=True)

    async def gather(self) -> list[list[Metric]]:
        """What the others say; without those that do not answer in time."""
        others = [number for number in range(self._workers) if number != self._worker]
        answers = await asyncio.gather(*(self._ask(number) for number in others))
        return [answer for answer in answers if answer is not None]

    async def _ask(self, number: int) -> list[Metric] | None:
        try:
            async with asyncio.timeout(limits.METRICS_SIBLING_SECONDS):
                reader, writer = await asyncio.open_unix_connection(
                    self._place(number), limit=limits.METRICS_SIBLING_BYTES
                )
                try:
                    answer = await reader.read(-1)
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
            return await asyncio.to_thread(_decode, answer)
        except (OSError, TimeoutError, msgspec.DecodeError) as error:
            _log.debug("process %d of this server did not tell its figures: %r", number, error)
            return None

    def _met(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        telling = asyncio.get_running_loop().create_task(self._tell(writer))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        try:
            self._refresh()
            writer.write(await asyncio.to_thread(_encode, self._figures))
            await writer.drain()
        except OSError:
            pass  # who asked has gone
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _place(self, number: int) -> Path:
        return self._directory / f"{number}.figures"


def _encode(figures: Collector) -> bytes:
    return msgspec.msgpack.encode(
        [
            _Family(
                family.name, family.documentation, family.type,
                [(sample.name, sample.labels, float(sample.value)) for sample in family.samples],
            )
            for family in figures.collect()
        ]
    )


def _decode(answer: bytes) -> list[Metric]:
    families = []
    for found in _decoder.decode(answer):
        family = Metric(found.name, found.documentation, found.kind)
        family.samples = [Sample(name, labels, value) for name, labels, value in found.samples]
        families.append(family)
    return families
