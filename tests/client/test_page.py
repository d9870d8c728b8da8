"""docs/client.md: its programs run as they stand and print what the page shows; and what it says about names is so."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import angelhair
from angelhair import limits
from angelhair.cli.main import build_parser
from angelhair.client import AsyncClient, Client
from angelhair.model import TIMELINE, QueueSettings
from tests.client.server import ROOT, Served

PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```\n\n```output\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:9324"



def verbs_of(client: type) -> set[str]:
    return {name for name in vars(client) if not name.startswith("_") and name != "close"}


VERBS = verbs_of(Client)


def run(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )


def test_every_program_shows_its_output() -> None:
    assert len(PROGRAMS) == PAGE.count("```python") == 3


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_prints_what_the_page_shows(server: Served, tmp_path: Path, number: int) -> None:
    program, output = PROGRAMS[number]
    assert ADDRESS in program
    ran = run(program.replace(ADDRESS, server.url), tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, output, "")


def test_every_verb_is_on_the_page() -> None:
    assert [name for name in VERBS if f"{name}(" not in PAGE] == []


def test_both_clients_have_the_same_verbs_with_the_same_words() -> None:
    assert verbs_of(AsyncClient) == VERBS
    for name in VERBS:
        assert getattr(Client, name).__doc__, f"{name} does not say what it does"
        if name != "consumer":
            assert getattr(Client, name).__doc__ == getattr(AsyncClient, name).__doc__


def test_the_default_address_is_the_servers() -> None:
    assert f'"{ADDRESS}"' in PAGE


def test_importing_the_package_loads_no_client_and_no_httpx(tmp_path: Path) -> None:
    ran = run(
        "import sys, angelhair; assert 'httpx' not in sys.modules and 'angelhair.client' not in sys.modules;"
        "angelhair.Client; assert 'httpx' in sys.modules; print(sorted(set(dir(angelhair)) & set(angelhair.__all__)))",
        tmp_path,
    )
    assert (ran.stdout, ran.stderr) == (f"{sorted(angelhair.__all__)}\n", "")


def test_without_httpx_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "httpx.py").write_text("raise ModuleNotFoundError('No module named httpx', name='httpx')")
    ran = run("import angelhair, angelhair.errors\ntry: angelhair.Client\nexcept ImportError as e: print(e)", tmp_path)
    assert (ran.stdout, ran.stderr) == ("angelhair.Client needs httpx: pip install angelhair\n", "")


def test_an_unknown_name_is_unknown() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        angelhair.Clint  # type: ignore[attr-defined]  # noqa: B018


TIMELINES = (ROOT / "docs" / "timelines.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_of_timelines_prints_what_it_shows(server: Served, tmp_path: Path) -> None:
    ((program, output),) = re.findall(
        r"^```python\n(.*?)^```\n\n```output\n(.*?)^```$", TIMELINES, re.MULTILINE | re.DOTALL
    )
    ran = run(program.replace(ADDRESS, server.url), tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, output, "")


def test_the_page_of_timelines_says_what_the_code_has() -> None:
    assert f"**at most {limits.TIMELINE_WINDOW} messages a shard**" in TIMELINES
    settings = QueueSettings(kind=TIMELINE)
    for name, value in (
        ("shards", f"{settings.lanes}"), ("granularity", f"`{settings.granularity}`"),
        ("producer_delay", f"{settings.producer_delay_ms // 1000} s"), ("lock", f"{settings.lock_ms // 1000} s"),
        ("expire_after", f"{(settings.expire_after_ms or 0) // 86_400_000} days"),
        ("visibility_timeout", f"{settings.visibility_timeout_ms // 1000} s"),
    ):
        assert f"\n| `{name}` | {value} | " in TIMELINES


def test_the_commands_on_the_page_of_timelines_parse() -> None:
    shown = [line.partition("#")[0] for line in TIMELINES.splitlines() if line.startswith("    angelhair ")]
    assert len(shown) >= 5
    for command in shown:
        words = shlex.split(command)[1:]
        assert build_parser({words[0]}).parse_args(words).command == "timeline"
