"""Names of endpoints: a resolver that hangs for one of them holds up no other, and nobody for long."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from angelhair import limits
from angelhair.server.sns.deliveries.names import Names, StillLooking, Unresolved
from tests.aws.listener import Listener, listening
from tests.aws.queues import client_of
from tests.aws.test_endpoints import subscribe
from tests.aws.topics import AwsTopic
from tests.wire.server import running_server

SLOW, QUICK = "slow.test", "quick.test"


class Resolver:
    """The system's, which knows two names more, and hangs where it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.free = threading.Event()
        self.free.set()
        self._real = socket.getaddrinfo

    def getaddrinfo(
        self, host: str, port: int, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0  # noqa: A002
    ) -> Any:
        if flags & socket.AI_NUMERICHOST or not host.endswith(".test"):
            return self._real(host, port, family, type, proto, flags)
        self.asked.append(host)
        if host == SLOW:
            self.free.wait()
        if host not in (SLOW, QUICK):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return self._real("127.0.0.1", port, family, type, proto, flags)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    yield made
    made.free.set()


def renamed(endpoint: Listener, name: str) -> Listener:
    endpoint.url = endpoint.url.replace("127.0.0.1", name)
    return endpoint


def test_a_name_whose_resolver_hangs_holds_up_no_other_endpoint(
    tmp_path: Path, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even until it is given up."""
    monkeypatch.setattr(limits, "SNS_RESOLVE_SECONDS", 3_600.0)
    with listening() as slow, listening() as quick, running_server(tmp_path) as server:
        sns = client_of(server, "sns")

        def topic_of(endpoint: Listener) -> AwsTopic:
            topic = AwsTopic(sns, sns.create_topic(Name=f"topic-{uuid4().hex}")["TopicArn"])
            subscribe(topic, endpoint)
            return topic

        hanging, going = topic_of(renamed(slow, SLOW)), topic_of(renamed(quick, QUICK))
        resolver.free.clear()
        looks = resolver.asked.count(SLOW)
        # More than the places that there are for posts.
        messages = limits.SNS_POSTS_AT_ONCE + 8
        for number in range(messages):
            hanging.publish(str(number))
        server.until(lambda: resolver.asked.count(SLOW) > looks)
        for number in range(5):
            going.publish(str(number))
        assert sorted(quick.next().message["Message"] for _ in range(5)) == ["0", "1", "2", "3", "4"]
        assert slow.sent.empty()
        resolver.free.set()
        # Nothing is lost: what was not posted comes again.
        got: set[str] = set()
        while len(got) < messages:
            got.add(slow.next().message["Message"])


def test_who_looks_waits_for_a_bound_and_who_comes_later_for_less(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SNS_RESOLVE_SECONDS", 3_600.0)
    monkeypatch.setattr(limits, "SNS_RESOLVE_JOINED_SECONDS", 0.01)
    resolver.free.clear()

    async def play() -> None:
        names = Names()
        first = asyncio.create_task(names.addresses(SLOW, 80))
        await asyncio.sleep(0)
        with pytest.raises(StillLooking):
            await names.addresses(SLOW, 80)
        assert not first.done()
        assert await names.addresses(QUICK, 80) == ["127.0.0.1"]
        monkeypatch.setattr(limits, "SNS_RESOLVE_SECONDS", 0.01)
        with pytest.raises(Unresolved):
            await names.addresses(SLOW, 80)
        with pytest.raises(Unresolved):
            await Names().addresses(SLOW, 80)
        assert not first.done()
        resolver.free.set()
        assert await first == ["127.0.0.1"]
        assert resolver.asked.count(SLOW) <= 2, "a look that hangs is not begun again beside itself"

    asyncio.run(play())


def test_looks_at_one_name_are_one(resolver: Resolver) -> None:
    async def play() -> None:
        names = Names()
        found = await asyncio.gather(*(names.addresses(QUICK, 80) for _ in range(20)))
        assert found == [["127.0.0.1"]] * 20

    asyncio.run(play())
    assert resolver.asked == [QUICK]


def test_only_so_many_names_are_looked_up_at_once(resolver: Resolver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNS_RESOLVES_AT_ONCE", 1)
    monkeypatch.setattr(limits, "SNS_RESOLVE_SECONDS", 0.2)
    resolver.free.clear()

    async def play() -> None:
        names = Names()
        with pytest.raises(Unresolved):
            await names.addresses(SLOW, 80)
        with pytest.raises(Unresolved):
            await names.addresses(QUICK, 80)
        assert QUICK not in resolver.asked
        # What is an address in itself needs no place.
        assert await names.addresses("127.0.0.1", 80) == ["127.0.0.1"]
        await names.stop()

    asyncio.run(play())


@pytest.mark.parametrize("host", ["nowhere.test", "a" * 64 + ".test", "\x00.test"])
def test_a_name_without_an_address(resolver: Resolver, host: str) -> None:
    async def play() -> None:
        with pytest.raises(Unresolved):
            await Names().addresses(host, 80)

    asyncio.run(play())


def test_a_loop_that_ends_does_not_wait_for_a_resolver_that_hangs(resolver: Resolver) -> None:
    resolver.free.clear()

    async def play() -> None:
        names = Names()
        looking = asyncio.create_task(names.addresses(SLOW, 80))
        while SLOW not in resolver.asked:
            await asyncio.sleep(0.001)
        await names.stop()
        with pytest.raises(asyncio.CancelledError):
            await looking

    asyncio.run(play())
    threads = [thread for thread in threading.enumerate() if SLOW in thread.name]
    assert threads and all(thread.daemon for thread in threads)
