"""docs/commands.md says what is so: its commands parse, its codes are the codes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from angelhair.cli import exits
from angelhair.cli.main import COMMANDS, build_parser

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "commands.md").read_text()


def test_every_command_in_a_block_parses() -> None:
    shown = [
        found.group() for line in PAGE.splitlines() if line.startswith("    ")
        for found in re.finditer(r"angelhair (?:[^|>#;&)'\"]|'[^']*'|\"[^\"]*\")+", line)
    ]
    assert len(shown) > 10
    parser = build_parser()
    for command in shown:
        words = shlex.split(command)[1:]
        assert parser.parse_args(words).command == words[0]


def test_every_command_has_its_row() -> None:
    table = PAGE[: PAGE.index("## A first round")]
    for command in COMMANDS:
        assert f"`{command.name}" in table


def test_exit_codes() -> None:
    table = PAGE[PAGE.index("## Exit codes") : PAGE.index("## Values")]
    for code in (exits.DONE, exits.FAILED, exits.WRONG_USAGE, exits.NOTHING_THERE, exits.UNAVAILABLE,
                 exits.OUTCOME_UNKNOWN):
        assert f"\n| {code} | " in table
    assert f"\n| {exits.INTERRUPTED}, {exits.NOBODY_READS} | " in table
