"""docs/accounts.md: its commands and programs run as they stand, its table is the routes' own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from angelhair import limits
from angelhair.server.auth.actions import ONLY_OF_THE_OWNER
from angelhair.server.auth.conditions import KNOWN
from angelhair.server.rest.routes import VERBS
from tests.aws.keys.keyed import keyed
from tests.cli.command import environment

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "accounts.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(bash|python)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_runs_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    """One shell for all of it, as a reader would: what one block exports, the next one uses."""
    with keyed(tmp_path, first_key=False) as server:
        script = ["set -e", f'angelhair() {{ {sys.executable} -m angelhair "$@"; }}']
        programs: list[str] = []
        for kind, text in BLOCKS:
            text = text.replace("http://127.0.0.1:9324", server.url).replace("127.0.0.1:9324", server.url[7:])
            if kind == "bash":
                script.append(text)
                continue
            # A program goes on where the one before it ended, unless it begins anew.
            programs.append(text)
            whole = "".join(programs[-1:] if "celery" in text else [each for each in programs if "celery" not in each])
            script.append(f"{sys.executable} - <<'PROGRAM'\n{whole}PROGRAM")
        variables = environment(
            ANGELHAIR_DATA=str(tmp_path / "data"), ANGELHAIR_SERVER=server.url, HOME=str(tmp_path),
            PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin", AWS_PAGER="", AWS_EC2_METADATA_DISABLED="true",
        )
        ran = subprocess.run(
            ["bash", "-c", "\n".join(script)], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        number = ran.stdout.splitlines()[0]
        assert f"parcels {number}\n" in ran.stdout
        assert "fragile\n" in ran.stdout and f"/{number}/parcels" in ran.stdout
        assert '{"queues":["parcels"]' in ran.stdout
        assert len(server.run("key", "list", "--account", "shop")["keys"]) == 2


def test_the_table_is_the_one_of_the_routes() -> None:
    table = PAGE[PAGE.index("| REST | Action |") :].partition("\n\n")[0]
    said: dict[tuple[str, str], str] = {}
    for row in table.splitlines()[2:]:
        left, action = re.fullmatch(r"\| (.*) \| `(\w+)` \|", row).groups()  # type: ignore[union-attr]
        method = ""
        for place in re.findall(r"`([^`]+)`", left):
            method, path = place.split(" ") if " " in place else (method, place)
            said[method, path.replace("…", "/queues/{queue}")] = action
    assert said == {(route.method, route.template): route.action for route in VERBS}


def test_its_figures_and_lists_are_the_codes() -> None:
    assert f"Up to {limits.ACCESS_KEYS:,} keys" in PAGE
    assert f"within {limits.KEYRING_SECONDS:g} seconds" in PAGE
    ours = {name.lower() for name in re.findall(r"`(aws:\w+)`", PAGE)}
    assert ours == {name for name in KNOWN if name.startswith("aws:")}
    owners = PAGE[PAGE.index("No policy gives away") : PAGE.index("## What to know about secrets")]
    named = set(re.findall(r"`(\w+)`", owners))
    assert named == {action for action in ONLY_OF_THE_OWNER if not action.endswith(("MoveTask", "MoveTasks"))}
