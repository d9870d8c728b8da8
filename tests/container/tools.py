"""What the tests of the container share: its script, run for real with the real command on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRY_POINT = ROOT / "container" / "entrypoint.sh"
HEALTH_CHECK = ROOT / "container" / "healthcheck.py"

PATIENCE_SECONDS = 60.0


class Image:
    """A directory that stands for the image: `angelhair` on the path, a working directory, a directory for YAML."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.conf = directory / "conf"
        programs = directory / "bin"
        for each in (self.data, programs):
            each.mkdir()
        # What `pip install` writes for [project.scripts], with the interpreter of these tests.
        (programs / "angelhair").write_text(
            f"#!{sys.executable}\nimport sys\nfrom angelhair.cli.main import main\nsys.exit(main())\n"
        )
        (programs / "angelhair").chmod(0o755)
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONUNBUFFERED": "1",
            "HOME": str(directory),
        }

    def environment(self, said: Mapping[str, str]) -> dict[str, str]:
        """`said` is what comes by `docker run -e`."""
        # In place of a mount at /data/conf.
        mounted = {"ANGELHAIR_CONFIG": str(self.conf)} if self.conf.is_dir() else {}
        return {**self._environment, **mounted, **said}

    def run(self, *words: str, **said: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", str(ENTRY_POINT), *words], cwd=self.data, env=self.environment(said), timeout=PATIENCE_SECONDS,
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )

    @contextmanager
    def running(self, *words: str, **said: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            ["/bin/sh", str(ENTRY_POINT), *words], cwd=self.data, env=self.environment(said),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def healthy(self, **said: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(HEALTH_CHECK)], cwd=self.data, env=self.environment(said), timeout=PATIENCE_SECONDS,
            capture_output=True, text=True, check=False,
        )
