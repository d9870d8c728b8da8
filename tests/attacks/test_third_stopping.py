"""A SIGTERM between the parent's look and its fork must reach the child that is about to be born.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, time
from angelhair import limits
from angelhair.server import processes
limits.RESTART_SECONDS = 0.05
real = signal.pthread_sigmask
forks = 0

def sigmask(how, numbers):
    global forks
    if how == signal.SIG_BLOCK:
        forks += 1
        if forks == 3:  # prepare, the first worker, and now its successor: the supervisor says stop, just before
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000): pass  # the handler runs here
    return real(how, numbers)

signal.pthread_sigmask = sigmask

def work(place, announce):
    announce()
    if forks == 2:
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)

sys.exit(processes._Processes(1, work).run(lambda: None, lambda: None))
"""


def test_a_stop_just_before_a_fork_reaches_the_child() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    server = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, start_new_session=True)
    try:
        assert server.wait(timeout=60) == 0
    except subprocess.TimeoutExpired:
        pytest.fail("SIGTERM was received, and the server goes on with a child that was never told")
    finally:
        try:
            os.killpg(server.pid, signal.SIGKILL)  # the session that this test made
        except ProcessLookupError:
            pass
        server.wait()
