"""ElasticMQ as it comes: in memory, in a process of its own, on a free port."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager

from bench.jars import fetch_elasticmq
from bench.processes import STOP_SECONDS, Running
from cluster.jars import java_command

START_SECONDS = 60


@contextmanager
def elasticmq() -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "rest-sqs.bind-hostname": "127.0.0.1", "rest-sqs.bind-port": port, "node-address.host": "127.0.0.1",
        "node-address.port": port, "rest-stats.enabled": "false",
    }
    command = [java_command(), *(f"-D{name}={value}" for name, value in options.items())]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [*command, "-cp", f"{fetch_elasticmq()}/*", "org.elasticmq.server.Main"],
            stdout=said, stderr=said, text=True,
        )
        try:
            running = Running(process, port)
            if not _answers(running):
                said.seek(0)
                raise RuntimeError(f"ElasticMQ does not serve: {said.read()}")
            yield running
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def _answers(running: Running) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and running.process.poll() is None:
        try:
            running.call("GET", "/?Action=ListQueues&Version=2012-11-05")
            return True
        except urllib.error.URLError:
            time.sleep(0.2)
    return False
