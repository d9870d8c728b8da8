"""The image's health check, asked of a real server."""

from __future__ import annotations

import re
import socket

import pytest

from tests.container.tools import Image

AS_THE_IMAGE_SAYS = {"ANGELHAIR_HOST": "0.0.0.0", "ANGELHAIR_OPEN": "true"}


@pytest.mark.parametrize("by", ["variable", "file"])
def test_a_server_that_is_ready_is_healthy(by: str, image: Image) -> None:
    with image.running("--port", "0", **AS_THE_IMAGE_SAYS) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+) ", process.stdout.readline())
        assert found is not None
        said = dict(AS_THE_IMAGE_SAYS)
        if by == "variable":
            said["ANGELHAIR_PORT"] = found.group(1)
        else:
            image.conf.mkdir()
            (image.conf / "a.yaml").write_text(f"port: {found.group(1)}\n")
        asked = image.healthy(**said)
        process.terminate()
        process.communicate()
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.strip()


def test_where_nobody_answers_it_is_not(image: Image) -> None:
    with socket.socket() as silent:
        # Taken, so that no other server gets it, and nobody listens.
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        asked = image.healthy(**AS_THE_IMAGE_SAYS, ANGELHAIR_PORT=str(port))
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr == f"127.0.0.1:{port} does not answer: ConnectionRefusedError\n"


def test_settings_that_are_wrong_are_unhealthy(image: Image) -> None:
    asked = image.healthy(ANGELHAIR_PORT="x")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr == "ANGELHAIR_PORT: 'x' is not a whole number from 0 to 65535\n"
