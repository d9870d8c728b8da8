"""A server that asks for access keys, in a process of its own, and the command that makes them beside it."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from angelhair.cli.main import main
from tests.aws.old_client import OldClient
from tests.cli.command import COMMAND, environment

DENIED = (403, "AccessDenied")

PATIENCE_SECONDS = 30.0
"""How long a test waits for what must come."""


@dataclass(frozen=True)
class Key:
    id: str
    secret: str
    account: str

    @property
    def basic(self) -> tuple[str, str]:
        return self.id, self.secret


class Keyed:
    """The server, and its store's command."""

    def __init__(self, url: str, place: tuple[str, ...], lines: Path) -> None:
        self.url = url
        self._place = place
        """Flags that name the store."""
        self._lines = lines

    def run(self, *words: str) -> Any:
        """A command on the store, in this process: what it prints with --json."""
        said = io.StringIO()
        with redirect_stdout(said):
            assert main([*words, *self._place, "--json"]) == 0, words
        return json.loads(said.getvalue())

    def account(self, name: str) -> str:
        return str(self.run("account", "create", name)["id"])

    def key(self, account: str = "default", **limits: str) -> Key:
        flags = [word for name, value in limits.items() for word in (f"--{name}", value)]
        made = self.run("key", "create", "--account", account, *flags)
        return Key(made["id"], made["secret"], made["account"])

    def client(self, key: Key, service: str = "sqs", **config: Any) -> Any:
        return boto3.client(
            service, endpoint_url=self.url, region_name="eu-west-1", aws_access_key_id=key.id,
            aws_secret_access_key=key.secret, config=Config(retries={"max_attempts": 0}, read_timeout=60, **config),
        )

    @contextmanager
    def spoken(self, protocol: str, key: Key) -> Iterator[Any]:
        """A client that speaks JSON, as today's do, or Query."""
        today = self.client(key)
        if protocol == "json":
            yield today
        else:
            with OldClient(today, key.id, key.secret) as old:
                yield old

    def rest(self, key: Key | None = None, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, auth=None if key is None else key.basic, timeout=60, **options)

    def lines(self, logger: str, **wanted: object) -> list[dict[str, Any]]:
        """What a logger has written so far, of lines in which all of this stands."""
        lines = [json.loads(line) for line in self._lines.read_text().splitlines() if line.startswith("{")]
        wanted["logger"] = logger
        return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]


@contextmanager
def keyed(folder: Path, *flags: str, place: tuple[str, ...] = (), first_key: bool = True) -> Iterator[Keyed]:
    """`place`: flags that name another store than a file in the folder. With a first key, which makes the server ask
    for one; it is nobody's who is in a test."""
    lines = folder / "lines"
    place = place or ("--data", str(folder / "data"))
    if first_key:
        Keyed("", place, lines).key()
    with lines.open("w") as output:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", *place, *flags], env=environment(), stdout=subprocess.PIPE,
            stderr=output, text=True,
        )
    assert process.stdout is not None
    with process.stdout:
        try:
            found = re.search(r"http://[0-9.]+:\d+", process.stdout.readline())
            assert found is not None, lines.read_text()
            yield Keyed(found.group().replace("0.0.0.0", "127.0.0.1"), place, lines)
        finally:
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0


def refusal(call: Callable[..., Any], **parameters: Any) -> tuple[int, str]:
    """The status and the code that a call of a client is refused with."""
    try:
        answer = call(**parameters)
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]
    raise AssertionError(f"it was not refused: {answer}")


def until(condition: Callable[[], Any]) -> Any:
    """Waits until something is so; what it is then."""
    give_up = monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert monotonic() < give_up
        sleep(0.05)
    return found


def sign_at(request: AWSRequest, key: Key, stamp: str, service: str = "sqs") -> None:
    """Signs as botocore does, at another time than now."""

    class At(SigV4Auth):
        def add_auth(self, wanted: AWSRequest) -> None:
            wanted.context["timestamp"] = stamp
            self._modify_request_before_signing(wanted)
            canonical = self.canonical_request(wanted)
            self._inject_signature_to_request(wanted, self.signature(self.string_to_sign(wanted, canonical), wanted))

    At(Credentials(key.id, key.secret), service, "eu-west-1").add_auth(request)
