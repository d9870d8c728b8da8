"""`@aws-sdk/client-sqs` under Node."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.aws.stories import STORIES, missing, told
from tests.wire.server import RunningServer

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / ".node-sdk" / "node_modules"
PROGRAM = Path(__file__).parent / "node" / "client.cjs"


@pytest.fixture(scope="module")
def outcomes(shared_server: RunningServer) -> dict[str, str]:
    node = shutil.which("node")
    if node is None:
        missing("the SDK for JavaScript needs Node, and there is no `node` on this machine")
    if not MODULES.is_dir():
        missing("the SDK for JavaScript is missing: `make setup` installs it")
    return told([node, str(PROGRAM), shared_server.url, "node-"], {"NODE_PATH": str(MODULES)})


@pytest.mark.parametrize("story", STORIES)
def test_told_by_the_sdk_for_javascript(outcomes: dict[str, str], story: str) -> None:
    assert outcomes[story] == ""
