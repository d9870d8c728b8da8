"""Requests as bytes: as HTTP wants them, around whatever they carry, or abused on the way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

HEADERS = (
    b"Expect: 100-continue", b"Expect: a miracle", b"Content-Encoding: gzip", b"Accept-Encoding: \xff",
    b"Range: bytes=0-", b"Content-Type: text/html; charset=\x80", b"Content-Type: multipart/form-data; boundary=x",
    b"Accept: application/x", b"X-Amz-Date: yesterday", b"X-Amz-Content-Sha256: 0",
    b"X-Amz-Security-Token: " + b"t" * 2_000,
    b"Authorization: AWS4-HMAC-SHA256 Credential=/////, SignedHeaders=, Signature=",
    b"Authorization: Basic \xff\xfe",
    b"Authorization: AWS4-HMAC-SHA256 Credential=AK/20300101/" + b"z" * 300 + b"/sqs/aws4_request",
    b"Authorization:", b"Authorization: AWS4-HMAC-SHA256 Credential=AK/20300101/<&>/sqs/aws4_request",
    b"x-amzn-query-mode: perhaps", b"X-Forwarded-For: \x01", b"X-Forwarded-Host: <b>]]>", b"Host: <&>\xc3\xa9",
    b"Host: [::1", b"Host: a:b:c", b"Traceparent: 00-" + b"g" * 32 + b"-0-0", b"Traceparent: " + b"0" * 500,
    b"Tracestate: =,=,=", b"Cookie: " + b"c=" * 900, b"Transfer-Encoding: identity",
    b"Connection: upgrade\r\nUpgrade: h2c", b"Connection: keep-alive, \xff", b"X-Request-Id: \x7f",
    b"If-None-Match: *", b"Content-Length: 0", b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked, chunked", b"No colon", b": no name", b" folded: x", b"Na me: x",
    b"X: " + b"x" * 70_000,
)

CHUNKS = (
    b"5\r\nabcde\r\n", b"-1\r\n", b"zz\r\n", b"5\r\nab", b"ffffffffffffffffff\r\n", b"0\r\n", b"0\r\n\r\n",
    b"5;" + b"e=" * 900, b"\r\n", b"00000000000000000000005\r\nabcde\r\n",
)


class Sent(NamedTuple):
    data: bytes
    whole: bool
    """One request as HTTP wants it, which has one answer."""


def framed(method: str, target: bytes, headers: Sequence[bytes], body: bytes, dice: random.Random) -> Sent:
    """Most arrive as they should; some as chunks; some with headers, or chunks, that nobody should send."""
    lines = [f"{method} ".encode() + target + b" HTTP/1.1", b"Host: 127.0.0.1:9324", *headers]
    way = dice.random()
    if way < 0.75:
        return Sent(b"\r\n".join([*lines, b"Content-Length: %d" % len(body), b"", body]), True)
    if way < 0.85:
        at = dice.randrange(len(body) + 1)
        pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:at], body[at:]) if piece]
        return Sent(b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b"".join(pieces) + b"0\r\n\r\n"]), True)
    if way < 0.95:
        more = dice.choices(HEADERS, k=dice.randint(1, 4))
        if any(header.startswith(b"Host:") for header in more):
            # In place of the good one: of two, nobody would look at what they say.
            del lines[1]
        return Sent(b"\r\n".join([*lines, *more, b"Content-Length: %d" % len(body), b"", body]), False)
    garbage = b"".join(dice.choices(CHUNKS, k=dice.randint(1, 6)))
    return Sent(b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", garbage]), False)
