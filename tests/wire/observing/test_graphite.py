"""A13: the same figures arrive at a Graphite, and one that is away disturbs nobody."""

from __future__ import annotations

import asyncio
import queue
import re
import socket
import threading
from contextlib import ExitStack

import pytest

from angelhair.model import QueueSettings
from angelhair.server.observing.graphite import Graphite
from angelhair.settings import Settings
from tests.wire.observing.world import PATIENCE_SECONDS, lines_of, logging_to, quiet, serving

LINE = re.compile(r"\A[A-Za-z0-9_.-]+ -?[0-9.e+-]+ [0-9]{10}\Z")


class Carbon:
    """What listens where Graphite would, on a thread of its own; every push as one text."""

    def __init__(self, listening: socket.socket) -> None:
        self.port: int = listening.getsockname()[1]
        self.pushes: queue.Queue[str] = queue.Queue()
        self._listening = listening
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._take)

    def __enter__(self) -> Carbon:
        self._listening.listen()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        socket.create_connection(("127.0.0.1", self.port)).close()  # behind whoever is still in line
        self._thread.join()
        self._listening.close()

    def _take(self) -> None:
        while True:
            connection, _ = self._listening.accept()
            with connection, connection.makefile("rb") as pushed:
                text = pushed.read().decode("ascii")
            if not text and self._ending.is_set():
                return
            self.pushes.put(text)

    async def next_push(self) -> dict[str, float]:
        text = await asyncio.to_thread(self.pushes.get, timeout=PATIENCE_SECONDS)
        lines = text.splitlines()
        assert [line for line in lines if not LINE.match(line)] == []
        return {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines}


def deaf() -> socket.socket:
    """Bound and not listening: whoever connects is refused."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def pusher(observing: object) -> Graphite:
    found: Graphite | None = observing._graphite  # type: ignore[attr-defined]
    assert found is not None
    return found


@pytest.mark.parametrize("form", ["127.0.0.1:{}", "tcp://127.0.0.1:{}", "tcp://127.0.0.1:{}/"])
def test_a13_figures_arrive_under_the_prefix(form: str) -> None:
    async def main() -> None:
        with Carbon(deaf()) as carbon:
            url = form.format(carbon.port)
            settings = Settings(use_metrics_graphite=True, graphite_url=url, graphite_prefix="shop.queues")
            async with serving(settings, queues={"jobs.new": QueueSettings()}) as served:
                await served.client.put("/queues/jobs.new/message", content=b"x")
                await served.client.put("/broken")
                pusher(served.observing).push()
                found = await carbon.next_push()
                assert found["shop.queues.angelhair_messages_put_total.queue.jobs_new"] == 1
                assert found["shop.queues.angelhair_http_connections"] == 1
                assert found["shop.queues.angelhair_http_request_seconds_bucket.le._Inf.method.PUT.route._broken"] == 1
                await served.client.put("/queues/jobs.new/message", content=b"x")
            # The last figures go when the server stops.
            found = await carbon.next_push()
            assert found["shop.queues.angelhair_messages_put_total.queue.jobs_new"] == 2

    asyncio.run(main())


def test_it_pushes_by_itself() -> None:
    async def main() -> None:
        with Carbon(deaf()) as carbon:
            async with serving() as served:
                figures = served.observing._figures
                graphite = Graphite(("127.0.0.1", carbon.port), None, figures, lambda: None, every_seconds=0.01)
                graphite.start()
                for _ in range(3):
                    assert "process_resident_memory_bytes" in await carbon.next_push()
                await graphite.stop()

    asyncio.run(main())


def test_without_its_parent_setting_nothing_is_pushed() -> None:
    async def main() -> None:
        async with serving(Settings(graphite_url="127.0.0.1:1")) as served:
            assert served.observing._graphite is None

    asyncio.run(main())


def test_a_dead_graphite_disturbs_nobody_and_is_said_once_per_outage() -> None:
    async def main() -> None:
        bound = deaf()
        settings = Settings(use_metrics_graphite=True, graphite_url=f"127.0.0.1:{bound.getsockname()[1]}")
        with ExitStack() as later:
            async with serving(settings, queues={"jobs": QueueSettings()}) as served:
                graphite = pusher(served.observing)
                for _ in range(5):
                    graphite.push()
                    assert (await served.client.put("/queues/jobs/message", content=b"x")).status_code == 201
                    await asyncio.to_thread(graphite._turns.join)
                carbon = later.enter_context(Carbon(bound))
                for _ in range(2):
                    graphite.push()
                    await carbon.next_push()

    with logging_to(level="info") as (_, stream):
        quiet()
        asyncio.run(main())
    said = [line["message"] for line in lines_of(stream) if "Graphite" in line["message"]]
    assert len(said) == 2, said
    assert "does not take the metrics" in said[0]
    assert "takes the metrics again" in said[1]
