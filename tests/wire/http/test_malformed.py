"""Ten thousand requests that nobody should send, to a whole server: it goes on answering, and its memory stays flat."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

from tests.wire.attacked import GROWTH_KILOBYTES, PATIENCE_SECONDS, attacked

WARM_UP, REQUESTS = 2_500, 10_000
AT_ONCE = 40

Broken = Callable[[random.Random], bytes]


def _request(dice: random.Random) -> bytes:
    """A good one, to be broken."""
    body = dice.randbytes(dice.choice([0, 1, 200, 5_000]))
    path = dice.choice(["/queues/q", "/queues/q/message", "/queues/q/messages", "/queues/q/messages/10", "/queues"])
    method = dice.choice(["GET", "PUT", "POST", "PATCH", "DELETE"])
    return f"{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def truncated(dice: random.Random) -> bytes:
    request = _request(dice)
    return request[: dice.randrange(1, len(request))]


def flipped(dice: random.Random) -> bytes:
    request = bytearray(_request(dice))
    for _ in range(dice.randint(1, 8)):
        request[dice.randrange(len(request))] = dice.randrange(256)
    return bytes(request)


def noise(dice: random.Random) -> bytes:
    return dice.randbytes(dice.randint(1, 2_000))


def huge_headers(dice: random.Random) -> bytes:
    lines = b"".join(b"X-%d: %s\r\n" % (number, b"x" * dice.randint(1, 400)) for number in range(dice.randint(50, 300)))
    return b"GET /queues HTTP/1.1\r\nHost: test\r\n" + lines + b"\r\n"


def long_url(dice: random.Random) -> bytes:
    return b"GET /" + b"q" * dice.randint(5_000, 40_000) + b" HTTP/1.1\r\nHost: test\r\n\r\n"


def wrong_length(dice: random.Random) -> bytes:
    length = dice.choice([b"-1", b"1e3", b"99999999999999999999", b"5, 6", b"", b"0x10", b"33554433"])
    return b"PUT /queues/q/message HTTP/1.1\r\nHost: test\r\nContent-Length: " + length + b"\r\n\r\nbody"


def bad_chunks(dice: random.Random) -> bytes:
    pieces = [b"5\r\nabcde\r\n", b"-1\r\n", b"zz\r\n", b"5\r\nab", b"ffffffffffffffffff\r\n", b"0\r\n"]
    chunks = b"".join(dice.choices(pieces, k=6))
    return b"PUT /queues/q/message HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks


def bad_text(dice: random.Random) -> bytes:
    bodies = [b"\xff\xfe\x00", b'{"bucket_size": "\xc3\x28"}', b"[" * 3_000, b'{"a":' * 900, b"\x00" * 50, b"nul"]
    body = dice.choice(bodies)
    path = dice.choice([b"/queues/q", b"/queues/%FF", b"/queues/q/messages", b"/queues/q?x=%zz", b"/queues/\xc3\xa9"])
    head = b"PUT %s HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (path, len(body)) + body


KINDS: list[Broken] = [truncated, flipped, noise, huge_headers, long_url, wrong_length, bad_chunks, bad_text]


async def send(port: int, data: bytes, dice: random.Random) -> None:
    """Sends it, whole or in pieces, and leaves: at once, or when the server has answered or had enough."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        pieces = dice.choice([1, 1, 1, 5])
        size = max(1, len(data) // pieces)
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await writer.drain()
            if pieces > 1:
                await asyncio.sleep(0)
        leaving = dice.random()
        if leaving < 0.6:
            writer.write_eof()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await reader.read(65_536)
        elif leaving < 0.8:
            writer.transport.abort()
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.close()
        try:
            await writer.wait_closed()
        except ConnectionError:
            pass


async def send_many(port: int, count: int, seed: int) -> None:
    dice = random.Random(seed)
    requests = iter([(KINDS[number % len(KINDS)](dice), random.Random(dice.random())) for number in range(count)])

    async def client() -> None:
        for data, own_dice in requests:
            await send(port, data, own_dice)

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))


async def answers(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE_SECONDS):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def test_ten_thousand_malformed_requests(tmp_path: Path) -> None:
    with attacked(tmp_path) as server:
        asyncio.run(send_many(server.port, WARM_UP, seed=1))
        before = server.memory_kilobytes
        asyncio.run(send_many(server.port, REQUESTS, seed=2))
        growth = server.memory_kilobytes - before
        assert asyncio.run(answers(server.port, "/queues")).startswith(b"HTTP/1.1 200 ")
        assert growth < GROWTH_KILOBYTES
