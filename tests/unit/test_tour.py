"""The tour: it ends well, it notices when something is not as told, and it needs nothing beyond the base install."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from angelhair.cli import tour_steps
from angelhair.cli.main import main
from angelhair.cli.tour_telling import BucketPicture, Cell, Teller
from angelhair.cli.tour_world import TourWorld, expect
from angelhair.engine.engine import Engine
from angelhair.engine.marks import Marks
from angelhair.errors import StaleReceipt

ROOT = Path(__file__).resolve().parents[2]


def test_the_tour_is_as_told_from_a_bare_checkout(tmp_path: Path) -> None:
    """As `make serve` starts it: another directory, no installed package, output into a pipe."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "run.py"), "tour", "--fast"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stderr == ""
    assert "All of it was as told." in told.stdout
    for number in range(1, len(tour_steps.STEPS) + 1):
        assert f"\n{number}. " in told.stdout
    assert "\x1b" not in told.stdout, "colours went into a pipe"
    assert list(tmp_path.iterdir()) == [], "a tour without --data leaves nothing behind"


def test_the_command_that_make_serve_leaves_runs_this_checkout(tmp_path: Path) -> None:
    """Beside its Python, in a directory whose name a shell would read otherwise, called from elsewhere."""
    checkout = tmp_path / "my $HOME 'of' queues"
    there = checkout / ".serve" / "bin"
    there.mkdir(parents=True)
    (checkout / "scripts").symlink_to(ROOT / "scripts")
    (there / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    (there / "python").chmod(0o755)
    shutil.copy(ROOT / "scripts" / "angelhair", there)
    ran = subprocess.run(
        [there / "angelhair", "put", "--help"], cwd="/", capture_output=True, text=True, check=True,
    )
    assert ran.stdout.lower().startswith("usage: angelhair put ")
    said = subprocess.run([there / "angelhair", "no such"], cwd="/", capture_output=True, text=True, check=False)
    assert (said.returncode, "no such" in said.stderr) == (2, True), "words stay whole"


def test_two_tours_on_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second meets the first one's queues and dead server, and must not care."""
    data = tmp_path / "kept"
    for _ in range(2):
        assert main(["tour", "--fast", "--data", str(data)]) == 0
    assert f"The file of this tour is {data / 'angelhair.db'}." in capsys.readouterr().out


def test_a_tour_that_is_not_as_told_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told_wrong(world: TourWorld) -> None:
        expect((await world.engine.list_queues(world.account))[0] == [], "there are no queues after the first step")

    monkeypatch.setattr(tour_steps, "STEPS", (tour_steps.create, told_wrong))
    assert main(["tour", "--fast", "--data", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "Not as told: there are no queues after the first step" in told
    assert "All of it was as told" not in told


def test_a_broken_engine_does_not_get_through(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that calls every receipt stale: the tour stops at the first ack."""

    async def ack(self: Engine, account: str, name: str, texts: list[str]) -> list[StaleReceipt]:
        return [StaleReceipt("always") for _ in texts]

    monkeypatch.setattr(Engine, "ack", ack)
    assert main(["tour", "--fast", "--data", str(tmp_path)]) == 1
    assert "Not as told: the receipt of the newest delivery settles the message" in capsys.readouterr().out


def test_a_place_that_cannot_be_used_is_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "angelhair.db").write_bytes(b"this is not a database, it only lies where one should be" * 100)
    assert main(["tour", "--fast", "--data", str(tmp_path)]) == 1
    assert "The tour could not go on: StoreRefused" in capsys.readouterr().out


def test_the_command_needs_nothing_beyond_the_base_install() -> None:
    """Whatever `angelhair` imports before it knows which command is wanted comes from Python, apsw or ourselves."""
    code = (
        "import sys; from angelhair.cli import main, tour_server;"
        "print(*{name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    listed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    # multiprocessing gives the main module a second name.
    assert set(listed.split()) - start_up_modules() - {"__mp_main__"} == {"angelhair", "apsw"}


def start_up_modules() -> set[str]:
    """What this environment imports before the first line of a program, such as coverage's hook."""
    code = "import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


MARKS = Marks(6, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
BUCKETS = [
    BucketPicture(0, "final", [Cell.SETTLED, Cell.IN_FLIGHT, Cell.MISSING, Cell.SETTLED]),
    BucketPicture(1, "open", [Cell.WAITING, Cell.WAITING, Cell.FREE, Cell.FREE]),
]


def test_the_picture_is_plain_in_a_pipe_and_explained_once() -> None:
    out = io.StringIO()
    teller = Teller(out, colours=False)
    teller.draw(BUCKETS, MARKS)
    teller.draw(BUCKETS[:1], MARKS)
    assert out.getvalue() == (
        "       bucket 0  final     [=>?=]\n"
        "       bucket 1  open      [oo..]\n"
        "       floor 0 <= repair 0 <= settled 1 <= final 1 <= reader 1; next id 6\n"
        "       (o waiting   > in flight   = settled   ? reserved, not written   . not reserved)\n"
        "       bucket 0  final     [=>?=]\n"
        "       floor 0 <= repair 0 <= settled 1 <= final 1 <= reader 1; next id 6\n"
    )


def test_the_picture_says_the_same_in_colours() -> None:
    plain, coloured = io.StringIO(), io.StringIO()
    Teller(plain, colours=False).draw(BUCKETS, MARKS)
    Teller(coloured, colours=True).draw(BUCKETS, MARKS)
    text = coloured.getvalue()
    assert "\x1b[" in text
    while "\x1b[" in text:
        before, _, rest = text.partition("\x1b[")
        text = before + rest.partition("m")[2]
    assert text == plain.getvalue()
