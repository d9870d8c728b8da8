"""The rules of style that a program can check. CONTRIBUTING.md has the others.

Each rule is a function from a file's text to its complaints, so that the last tests can plant an offence and see it
found.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "angelhair"

MAXIMUM_LINES = 400
"""A file that grows past this has two subjects."""

NOT_OURS = {".git", ".venv", ".serve", ".old-sdk", ".node-sdk", ".cache", ".mypy_cache", ".ruff_cache", ".pytest_cache",
            ".import_linter_cache", ".hypothesis", "__pycache__", "build", "dist"}

# Spelled in pieces, so that this file does not break its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.$}-])/(?:" + "|".join(["work", "root", "Users", "home"]) + r")/[\w.]")
PACKAGE_INDEX = re.compile("|".join([
    "py" + r"pi\.(?:org|io)",
    "npm" + r"js\.",
    r'"resol' + r'ved": ',
    "python" + "hosted",
    r"repo1?\.maven" + r"\.",
    "index" + r"-url[ =]+\w",
    "find" + r"-links[ =]+[\w/.]",
]))

OUTSIDE_WORLD = {"asyncio", "concurrent", "datetime", "os", "random", "secrets", "selectors", "signal", "socket",
                 "subprocess", "threading", "time"}
OUTSIDE_CALLS = {
    "sleep": "only the server's workers sleep",
    "uuid1": "randomness is handed in",
    "uuid4": "randomness is handed in",
    "urandom": "randomness is handed in",
    "open": "the store is the only way out",
    "print": "the store is the only way out",
    "input": "the store is the only way out",
    "hash": "differs from process to process for text, so a seed would not replay",
    "id": "differs from run to run, so a seed would not replay",
}

BOUND_NAME = re.compile(r"(?:^|_)(?:MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(?:_|$)")


def python_files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.rglob("*.py"))]


def repository_files() -> list[Path]:
    """What is or would be committed; in a copy without its history, whatever is not a cache."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if path.is_file())


def too_long(text: str) -> Iterator[str]:
    count = text.count("\n")
    if count > MAXIMUM_LINES:
        yield f"{count} lines, more than {MAXIMUM_LINES}"


def undocumented(text: str) -> Iterator[str]:
    if text.strip() and ast.get_docstring(ast.parse(text)) is None:
        yield "no docstring says what the file is for"


def machine_bound(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in (MACHINE_PATH, PACKAGE_INDEX):
            if found := pattern.search(line):
                yield f"line {number}: {found.group()!r} belongs to one machine or one package index"


def impure(text: str) -> Iterator[str]:
    """What the engine and batching must not touch, wherever in the file it hides."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for module in modules:
                if module.partition(".")[0] in OUTSIDE_WORLD:
                    yield f"line {node.lineno}: imports {module}"
        if isinstance(node, ast.Call):
            function = node.func
            name = function.id if isinstance(function, ast.Name) else ""
            if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                name = function.attr if function.attr in {"sleep", "uuid1", "uuid4", "urandom"} else ""
            if name in OUTSIDE_CALLS:
                yield f"line {node.lineno}: calls {name}: {OUTSIDE_CALLS[name]}"


def stray_bounds(text: str) -> Iterator[str]:
    """A number that is named as a bound. Unnamed numbers cannot be told from others, so they are left to the reader."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and BOUND_NAME.search(target.id) and is_number(value):
                yield f"line {node.lineno}: {target.id} belongs in limits.py"


def is_number(expression: ast.expr) -> bool:
    """A literal number, or arithmetic on nothing but literal numbers."""
    parts = [part for part in ast.walk(expression) if isinstance(part, ast.expr)]
    leaves = [part.value for part in parts if isinstance(part, ast.Constant)]
    return (
        all(isinstance(part, ast.Constant | ast.BinOp | ast.UnaryOp) for part in parts)
        and all(isinstance(leaf, int | float) for leaf in leaves)
    )


def complaints(paths: list[Path], rule: Callable[[str], Iterator[str]]) -> list[str]:
    assert paths, "the rule looked at nothing: has a folder been renamed?"
    return [
        f"{path.relative_to(ROOT)}: {complaint}"
        for path in paths
        for complaint in rule(path.read_text(encoding="utf-8", errors="replace"))
    ]


def test_source_files_fit_on_a_few_screens() -> None:
    assert complaints(python_files(SOURCE), too_long) == []


def test_every_file_says_what_it_is_for() -> None:
    assert complaints([path for path in repository_files() if path.suffix == ".py"], undocumented) == []


def test_nothing_names_a_machine_or_a_package_index() -> None:
    assert complaints(repository_files(), machine_bound) == []


def test_engine_and_batching_touch_only_the_store() -> None:
    assert complaints(python_files(SOURCE / "engine", SOURCE / "batching"), impure) == []


def test_named_bounds_live_in_limits() -> None:
    """Stores are left out: the sizes of SQLite's and Cassandra's own parts are theirs, not promises to users."""
    assert complaints(python_files(SOURCE / "engine", SOURCE / "batching"), stray_bounds) == []


@pytest.mark.parametrize(
    ("rule", "offence"),
    [
        (too_long, "x = 1\n" * (MAXIMUM_LINES + 1)),
        (undocumented, "x = 1\n"),
        (machine_bound, "see /" + "home/someone/notes"),
        (machine_bound, "path = '/" + "root/.cache'"),
        (machine_bound, "--index" + "-url=somewhere"),
        (machine_bound, "get it from py" + "pi.org"),
        (impure, "import time\n"),
        (impure, "from asyncio import gather\n"),
        (impure, "def f():\n    import random\n"),
        (impure, "async def f(world):\n    await world.sleep(1)\n"),
        (impure, "token = uuid.uuid4()\n"),
        (impure, "slot = hash('queue') % 4\n"),
        (stray_bounds, "MAXIMUM_BODY_BYTES = 256 * 1024\n"),
        (stray_bounds, "BATCH_LIMIT: int = 500\n"),
    ],
)
def test_rules_catch_an_offence(rule: Callable[[str], Iterator[str]], offence: str) -> None:
    assert list(rule(offence)) != []


@pytest.mark.parametrize(
    ("rule", "innocent"),
    [
        (too_long, "x = 1\n" * MAXIMUM_LINES),
        (undocumented, ""),
        (undocumented, '"""Why this file exists."""\n'),
        (machine_bound, "the home page, src/work/root, https://example.com/home/page"),
        (impure, "from angelhair.clock import Moment\nuuid.UUID(text)\nstore.open(1)\n"),
        (stray_bounds, "MAXIMUM = limits.BODY_BYTES\nTABLE_COUNT = 9\nLIMIT_NAME = 'body'\n"),
    ],
)
def test_rules_leave_the_innocent_alone(rule: Callable[[str], Iterator[str]], innocent: str) -> None:
    assert list(rule(innocent)) == []
