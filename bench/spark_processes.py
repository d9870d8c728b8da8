"""A job on Spark in processes of its own: the driver in Python, its Java, and the workers in Python that run tasks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence

from bench.here import ROOT
from bench.processes import command_of, family

LOOK_SECONDS = 0.01

END_SECONDS = 60
"""More than workers take to see that their driver is gone."""

SHOWN_CHARACTERS = 2_000


class SparkProcess:
    """Started at once. Whoever made it closes it; what is left then is killed."""

    def __init__(self, arguments: Sequence[str]) -> None:
        paths = [str(ROOT / "src"), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        self._warnings = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=self._warnings,
            text=True,
        )
        self.said: list[str] = []
        self._seen: set[int] = set()
        self._changed = threading.Condition()
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def __enter__(self) -> SparkProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.said.append(line.rstrip("\n"))
                self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """It has done what it was asked for, or has ended."""
        return "done" in self.said or self._process.poll() is not None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for(self, line: str, seconds: float) -> None:
        """Raises if it does not come to say so."""
        end = time.monotonic() + seconds
        with self._changed:
            while line not in self.said:
                if time.monotonic() > end or (self._process.poll() is not None and not self._listening.is_alive()):
                    break
                self._changed.wait(0.1)
        if line not in self.said:
            raise RuntimeError(f"it never said {line!r}: {self.complaint()}")

    def wait_until_over(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.is_over:
            if time.monotonic() > end:
                raise RuntimeError(f"it goes on and on: {self.complaint()}")
            time.sleep(LOOK_SECONDS)

    def complaint(self) -> str:
        self._warnings.seek(0)
        return f"said {self.said[-3:]}, ended with {self._process.poll()}: {self._warnings.read()[-SHOWN_CHARACTERS:]}"

    def java(self) -> list[int]:
        return [pid for pid in self.everyone() if "org.apache.spark.deploy.SparkSubmit" in command_of(pid)]

    def workers(self) -> list[int]:
        """Those that run tasks: what the daemons have forked, not the daemons."""
        found = {pid for pid in self.everyone() if "pyspark.daemon" in command_of(pid)}
        forked = {child for pid in found for child in family(pid) if child != pid}
        return sorted(forked)

    def everyone(self) -> list[int]:
        found = list(family(self._process.pid))
        self._seen.update(found[1:])
        return found

    def kill_driver(self) -> bool:
        """Its Python and its Java at once. False if it was over before."""
        victims = [self._process.pid, *self.java()]
        if self.is_over or len(victims) < 2:
            return False
        killed = [_kill(pid) for pid in victims]
        return all(killed)

    def kill_worker(self, choose: float) -> bool:
        """One that is at work, waited for if there is none. `choose`: which of them, from 0 to 1."""
        while not self.is_over:
            workers = self.workers()
            if workers and _kill(workers[int(choose * len(workers))], "pyspark.daemon"):
                return True
            time.sleep(LOOK_SECONDS)
        return False

    def close(self) -> None:
        """Waits for the end of all of it; a driver that was not killed ends by itself when it is done."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        end = time.monotonic() + END_SECONDS
        while time.monotonic() < end and any("pyspark" in command_of(pid) for pid in self._seen):
            time.sleep(LOOK_SECONDS)
        for pid in self._seen:
            _kill(pid, "pyspark")
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._listening.join(END_SECONDS)
        self._warnings.close()


def _kill(pid: int, only: str = "") -> bool:
    """Through a descriptor: the number may be another process's by now, and then `only` is not in its command."""
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if only not in command_of(pid):
            return False
        signal.pidfd_send_signal(held, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(held)
