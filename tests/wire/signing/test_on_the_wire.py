"""A real boto3 client and a real connection: what our server reads from the wire is what was signed."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import boto3
import pytest
import uvloop
from botocore.config import Config

from angelhair.server.auth import Identity, Refused
from angelhair.server.http import Request, Response
from tests.wire.http.echo import connected, serving
from tests.wire.signing.signers import ALICE, BOB, NOW, REGION, by_runtime, verified


def asked(secret: str, ask: Any) -> list[Identity | Refused]:
    """What the server makes of it, when a client of this secret asks."""
    seen: list[Identity | Refused] = []

    async def judge(request: Request) -> Response:
        try:
            seen.append(verified(request, time.time()))
        except Refused as refused:
            seen.append(refused)
        return Response(200, b"{}", "application/x-amz-json-1.0")

    async def story() -> None:
        async with serving(judge) as (_, port):
            url = f"http://127.0.0.1:{port}"
            client = boto3.client(
                "sqs", region_name=REGION, endpoint_url=url, aws_access_key_id=ALICE.id, aws_secret_access_key=secret,
                config=Config(retries={"total_max_attempts": 1}),
            )
            await asyncio.to_thread(ask, client, f"{url}/111111111111/orders")
            await asyncio.to_thread(client.close)

    uvloop.run(story())
    return seen


@pytest.mark.parametrize("ask", [
    lambda client, _: client.list_queues(),
    lambda client, url: client.delete_message(QueueUrl=url, ReceiptHandle="a+b/c=="),
    lambda client, url: client.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0),
])
def test_a_client_is_known_by_its_signature(ask: Any) -> None:
    [identity] = asked(ALICE.secret, ask)
    assert isinstance(identity, Identity)
    assert (identity.key, identity.service) == (ALICE, "sqs")


def test_a_client_with_another_secret_is_not() -> None:
    [refused] = asked(BOB.secret, lambda client, _: client.list_queues())
    assert isinstance(refused, Refused)
    assert (refused.code, refused.status) == ("SignatureDoesNotMatch", 403)


def raw(request: Request, lines: list[str]) -> bytes:
    """With these lines in place of its header `other`, so that it is on the wire as often as it is signed."""
    target = request.path + (f"?{request.query}" if request.query else "")
    head = [f"{request.method} {target} HTTP/1.1", *lines]
    head += [f"{name}: {value}" for name, value in request.headers.items() if name != "other"]
    return "\r\n".join([*head, "", ""]).encode("latin-1")


@pytest.mark.parametrize(("signed", "lines"), [
    (["one", "two"], ["Other: one", "Other: two"]),
    (["one", "two"], ["Other: one  ", "other:\ttwo\t"]),
    (["one", "", "two"], ["Other: one", "Other:", "OTHER: two"]),
    (["a, b"], ["Other: a,   b"]),
    (["\xe9"], ["Other: \xc3\xa9"]),
])
def test_repeated_headers_are_read_as_they_were_signed(signed: list[str], lines: list[str]) -> None:
    seen: list[Identity] = []

    async def judge(request: Request) -> Response:
        seen.append(verified(request))
        return Response(200, b"{}")

    async def story() -> None:
        async with serving(judge) as (_, port), connected(port) as client:
            client.send(raw(by_runtime("GET", headers=[("Other", value) for value in signed]), lines))
            assert (await client.answer()).status == 200

    uvloop.run(story())
    assert [identity.key for identity in seen] == [ALICE]


def test_two_authorizations_are_refused() -> None:
    """Whichever a proxy in between had looked at, we might look at the other."""
    request = by_runtime("GET", headers=[("Other", "x")])
    twice = [f"Authorization: {request.headers['authorization']}", "Other: x"]
    seen: list[str] = []

    async def judge(request: Request) -> Response:
        try:
            verified(request, NOW)
        except Refused as refused:
            seen.append(refused.code)
        return Response(200, b"{}")

    async def story() -> None:
        async with serving(judge) as (_, port), connected(port) as client:
            client.send(raw(request, twice))
            await client.answer()

    uvloop.run(story())
    assert seen == ["IncompleteSignature"]
