"""Requests signed by others: botocore and the AWS common runtime. What they send becomes what our server would read."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from awscrt.auth import (
    AwsCredentialsProvider,
    AwsSignatureType,
    AwsSignedBodyHeaderType,
    AwsSigningAlgorithm,
    AwsSigningConfig,
    aws_sign_request,
)
from awscrt.http import HttpHeaders, HttpRequest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from angelhair.server.auth import AccessKey, Identity, SigningKeys, verify
from angelhair.server.http.messages import Request

NOW = int(datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC).timestamp())
STAMP = "20261116T120000Z"
HOST = "sqs.us-east-1.amazonaws.com"
REGION = "us-east-1"
SERVICES = frozenset(["sqs", "sns", "sts"])

ALICE = AccessKey("AHKIALICE00000000000", "the+secret/of=Alice", "111111111111")
BOB = AccessKey("AHKIBOB0000000000000", "the secret of Bob", "222222222222")
GONE = AccessKey("AHKIGONE000000000000", "the+secret/of=Alice", "111111111111", enabled=False)
KEYS = {key.id: key for key in (ALICE, BOB, GONE)}

Headers = Iterable[tuple[str, str]]


def verified(
    request: Request, now_seconds: float = NOW, keys: Mapping[str, AccessKey] = KEYS, kept: SigningKeys | None = None
) -> Identity:
    return verify(request, keys.get, now_seconds, SERVICES, SigningKeys() if kept is None else kept)


def read(method: str, target: str, headers: Headers, body: bytes) -> Request:
    """As `server.http` reads it from a connection."""
    joined: dict[str, str] = {}
    for name, value in headers:
        name, value = name.lower(), value.encode().decode("latin-1").strip(" \t")
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    path, _, query = target.encode().decode("latin-1").partition("?")
    return Request(method, path, query, joined, body, "id", "127.0.0.1", False, True)


def read_prepared(prepared: Any) -> Request:
    """What botocore is about to send."""
    url = urlsplit(prepared.url)
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    headers = list(prepared.headers.items())
    headers = [(name, value.decode() if isinstance(value, bytes) else value) for name, value in headers]
    if "host" not in {name.lower() for name, _ in headers}:
        headers.append(("Host", url.netloc))
    body = prepared.body or b""
    return read(prepared.method, target, headers, body.encode() if isinstance(body, str) else body)


def at(stamp_seconds: int) -> Any:
    """botocore's clocks, for the time of a signing."""
    clocks = ExitStack()
    for module in ("botocore.auth", "botocore.crt.auth"):
        clocks.enter_context(
            patch(f"{module}.get_current_datetime", lambda **_: datetime.fromtimestamp(stamp_seconds, UTC))
        )
    return clocks


def by_botocore(
    method: str = "POST",
    target: str = "/",
    headers: Headers = (),
    body: bytes = b"",
    key: AccessKey = ALICE,
    service: str = "sqs",
    region: str = REGION,
    expires: int | None = None,
    params: Mapping[str, str] | None = None,
    now_seconds: int = NOW,
) -> Request:
    """With the signature in a header; with `expires`, in the query."""
    request = AWSRequest(method, f"https://{HOST}{target}", data=body or None, params=params)
    for name, value in headers:
        request.headers.add_header(name, value)
    credentials = Credentials(key.id, key.secret)
    signer = (
        SigV4Auth(credentials, service, region) if expires is None
        else SigV4QueryAuth(credentials, service, region, expires=expires)
    )
    with at(now_seconds):
        signer.add_auth(request)
    prepared = request.prepare()
    # It signs a header as often as it occurs; its own transport would send the last one only.
    prepared.headers = request.headers
    return read_prepared(prepared)


def by_runtime(
    method: str = "POST",
    target: str = "/",
    headers: Headers = (),
    body: bytes = b"",
    key: AccessKey = ALICE,
    service: str = "sqs",
    region: str = REGION,
    expires: int | None = None,
    body_header: bool = False,
    now_seconds: int = NOW,
) -> Request:
    request = HttpRequest(method, target, HttpHeaders([("Host", HOST), *headers]), io.BytesIO(body) if body else None)
    signing = AwsSigningConfig(
        algorithm=AwsSigningAlgorithm.V4,
        signature_type=(
            AwsSignatureType.HTTP_REQUEST_HEADERS if expires is None else AwsSignatureType.HTTP_REQUEST_QUERY_PARAMS
        ),
        credentials_provider=AwsCredentialsProvider.new_static(key.id, key.secret),
        region=region,
        service=service,
        date=datetime.fromtimestamp(now_seconds, UTC),
        expiration_in_seconds=expires,
        signed_body_header_type=(
            AwsSignedBodyHeaderType.X_AMZ_CONTENT_SHA_256 if body_header else AwsSignedBodyHeaderType.NONE
        ),
    )
    aws_sign_request(request, signing).result(10)
    return read(method, request.path, list(request.headers), body)


def with_header(request: Request, name: str, value: str | None) -> Request:
    """The same request with another value of a header, or, for None, without it."""
    headers = dict(request.headers)
    headers.pop(name, None)
    if value is not None:
        headers[name] = value
    return replace(request, headers=headers)
