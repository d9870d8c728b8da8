"""What SDKs of other languages tell, each in a process that knows the server's URL and nothing else of us."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NoReturn

import pytest

PATIENCE_SECONDS = 120
"""For all stories of one SDK: on a machine with nothing else to do it takes five seconds, most of them to start."""

STORIES = (
    "a queue is made, found and described",
    "a message arrives with its attributes and checksums",
    "of a batch the bad entry alone fails",
    "a long poll is answered when something comes",
    "released it comes again at once and deleted never",
    "fifo keeps the order of a group and drops what is sent twice",
    "errors are of the classes that the SDK has for them",
)
"""Told by each SDK, in this order, under these names."""


def told(command: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    """What went wrong in each story; nothing of those that went well."""
    ran = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, encoding="utf-8", check=False,
        timeout=PATIENCE_SECONDS,
    )
    lines = [line.split("\t") for line in ran.stdout.splitlines()]
    assert [name for _, name, *_ in lines] == list(STORIES), f"{ran.stdout}{ran.stderr}"
    return {name: "" if outcome == "ok" else " ".join(said) for outcome, name, *said in lines}


def missing(what: str) -> NoReturn:
    """Where somebody works, a test may be left out; where everything is to be proved, not."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)
