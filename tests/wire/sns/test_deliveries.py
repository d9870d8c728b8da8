"""Posts to endpoints: what is connected to, what is waited for, what an answer means, when it is tried again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angelhair import limits
from angelhair.clock import SystemClock
from angelhair.engine.engine import Engine
from angelhair.identities import RandomIdentities
from angelhair.server.sns.checks.delivery_policies import DEFAULT, FUNCTIONS, RetryPolicy, delay_seconds, retry_policy
from angelhair.server.sns.deliveries.places import Place
from angelhair.server.sns.deliveries.posting import Answer, Poster
from angelhair.server.sns.signing import NotReady, Signer, _made
from angelhair.stores.sqlite import open_store

Conversation = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def endpoint(conversation: Conversation, context: ssl.SSLContext | None = None) -> Any:
    """The port of a server that holds this conversation with whoever comes."""

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await conversation(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def posted(
    conversation: Conversation, host: str = "shop.example", scheme: str = "http", context: ssl.SSLContext | None = None
) -> tuple[Answer, str]:
    async with endpoint(conversation, context) as port:
        url = urlsplit(f"{scheme}://{host}:{port}/inbox?a=b")
        poster = Poster()
        try:
            return await poster.post(Place(url, host, port, "127.0.0.1"), b"hello", {"x-amz-sns-message-type": "N"})
        finally:
            await poster.close()


async def heard(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    await reader.readexactly(5)
    return head


def test_the_connection_goes_to_the_address_and_the_name_is_said() -> None:
    heads: list[str] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await heard(reader))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    assert asyncio.run(posted(converse))[0] is Answer.TAKEN
    assert heads[0].startswith("POST /inbox?a=b HTTP/1.1\r\n")
    assert "host: shop.example:" in heads[0].lower()
    assert "x-amz-sns-message-type: N" in heads[0]


@pytest.mark.parametrize(
    ("status", "meant"),
    [(200, Answer.TAKEN), (299, Answer.TAKEN), (301, Answer.FAILED), (400, Answer.REFUSED), (404, Answer.REFUSED),
     (429, Answer.FAILED), (500, Answer.FAILED), (599, Answer.FAILED)],
)
def test_what_an_answer_means(status: int, meant: Answer) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard(reader)
        writer.write(b"HTTP/1.1 %d X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n" % status)

    assert asyncio.run(posted(converse))[0] is meant


def test_one_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SNS_POST_SECONDS", 0.2)

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    answer, why = asyncio.run(posted(converse))
    assert (answer, "0.2 seconds" in why or "Timeout" in why) == (Answer.FAILED, True)


def test_one_that_never_ends_is_read_a_little(monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await heard(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            written += 65_536

    assert asyncio.run(posted(converse))[0] is Answer.TAKEN
    assert written < 100_000_000


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"])
def test_what_is_no_answer_is_a_failure(answer: bytes) -> None:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard(reader)
        writer.write(answer)

    assert asyncio.run(posted(converse))[0] is Answer.FAILED


def test_a_certificate_that_nobody_vouches_for_is_not_believed(tmp_path: Path) -> None:
    key, certificate = _made()
    (tmp_path / "both.pem").write_text(key + certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "both.pem")
    told: list[str] = []

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        told.append(await heard(reader))

    answer, why = asyncio.run(posted(converse, "localhost", "https", context))
    assert (answer, told) == (Answer.FAILED, [])
    assert "CERTIFICATE_VERIFY_FAILED" in why


# --- when it is tried again -------------------------------------------------------------------------------------------


def test_three_more_tries_twenty_seconds_apart_unless_something_else_is_said() -> None:
    assert [delay_seconds(DEFAULT, failures) for failures in range(1, 6)] == [20, 20, 20, None, None]
    own = '{"healthyRetryPolicy": {"numRetries": 1}}'
    topic = '{"http": {"defaultHealthyRetryPolicy": {"numRetries": 2}}}'
    assert retry_policy(None, None) == DEFAULT
    assert retry_policy(own, None).num_retries == 1
    assert retry_policy(None, topic).num_retries == 2
    assert retry_policy(own, topic).num_retries == 1
    deaf = '{"http": {"defaultHealthyRetryPolicy": {"numRetries": 2}, "disableSubscriptionOverrides": true}}'
    assert retry_policy(own, deaf).num_retries == 2
    assert retry_policy(own, '{"http": {"disableSubscriptionOverrides": true}}') == DEFAULT


def test_the_phases_follow_each_other() -> None:
    policy = RetryPolicy(2, 10, 9, 2, 1, 2, "linear")
    assert [delay_seconds(policy, failures) for failures in range(1, 11)] == [0, 0, 2, 4, 6, 8, 10, 10, 10, None]


@given(
    st.integers(1, 3600), st.integers(0, 3599), st.integers(0, 25), st.integers(0, 25), st.integers(0, 25),
    st.integers(0, 25), st.sampled_from(FUNCTIONS),
)
def test_delays_only_grow_and_stay_between_their_bounds(
    least: int, more: int, at_once: int, early: int, growing: int, late: int, function: str
) -> None:
    most = min(least + more, 3600)
    retries = at_once + early + growing + late
    policy = RetryPolicy(least, most, retries, at_once, early, late, function)
    delays = [delay_seconds(policy, failures) for failures in range(1, retries + 1)]
    assert delay_seconds(policy, retries + 1) is None
    assert None not in delays
    known = [delay for delay in delays if delay is not None]
    assert known == sorted(known)
    assert all(least <= delay <= most for delay in known[at_once:])
    assert known[:at_once] == [0] * at_once


# --- the key ----------------------------------------------------------------------------------------------------------


def test_servers_that_make_the_key_at_once_have_one(tmp_path: Path) -> None:
    async def make() -> None:
        store = await open_store(tmp_path / "queues.db")
        signers = [Signer(Engine(store, RandomIdentities(), SystemClock())) for _ in range(3)]
        with pytest.raises(NotReady):
            _ = signers[0].certified
        await asyncio.gather(*[signer.ready() for signer in signers])
        late = Signer(Engine(store, RandomIdentities(), SystemClock()))
        path = signers[0].certified.path
        assert await late.certificate(path) == signers[0].certified.certificate
        assert await late.certificate("/SimpleNotificationService-x.pem") is None
        assert len({signer.certified.certificate for signer in signers}) == 1
        assert len({signer.sign("text", "1") for signer in [*signers, late]}) == 1
        assert len({signer.token("subscription") for signer in signers}) == 1
        await asyncio.gather(*[signer.stop() for signer in signers])
        await store.close()

    asyncio.run(make())
