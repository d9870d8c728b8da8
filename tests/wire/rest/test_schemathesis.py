"""schemathesis over the published description of a running server: all checks, all phases, always the same cases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx

from angelhair.engine.bucketed.ack import ACKED
from angelhair.engine.schema import STATES
from angelhair.engine.store import Change
from angelhair.server.rest.operators import OPERATORS
from angelhair.server.rest.routes import ROUTES
from tests.wire.server import running_server

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

LEAST_CASES = 1_500
"""Fewer would mean that it has stopped trying."""

LEAST_ACKS = 3
"""That have an effect; the rest is refused, as it should be."""


def _is_ack(change: Change) -> bool:
    return any(row.values is not None and row.values.get("settled") == ACKED for row in change.rows)


async def _go_on() -> None:
    """Nothing goes wrong: it is only counted."""


def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        with httpx.Client(base_url=server.url) as client:
            for settings in ({"dead_letter_queue": "invoices", "max_deliveries": 3}, {}):
                name = "orders" if settings else "invoices"
                assert client.put(f"/queues/{name}", json=settings).status_code == 201
            assert client.put("/queues/reminders", json={"kind": "timeline"}).status_code == 201
        acked = server.store.next("change", STATES, _go_on, when=_is_ack, times=sys.maxsize)
        report = tmp_path / "report.json"
        done = subprocess.run(
            [
                sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()",
                "--config-file", str(HERE / "schemathesis.toml"),
                "run", f"{server.url}/openapi.json", "--checks", "all",
                "--report", "json", "--report-json-path", str(report),
            ],
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.wire.rest.schemathesis_hooks", "PYTHONPATH": str(ROOT),
                 "NO_COLOR": "1"},
            capture_output=True, text=True, check=False, timeout=280,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
    said = json.loads(report.read_text())
    assert said["complete"] and said["stop_reason"] == "completed"
    assert {phase: outcome["status"] for phase, outcome in said["phases"].items()} == {
        "examples": "success", "coverage": "success", "fuzzing": "success", "stateful": "success",
    }
    cases = said["test_cases"]
    print(f"schemathesis: {cases['generated']} cases in {said['running_time']:.0f} s")
    assert cases["generated"] >= LEAST_CASES
    assert (cases["with_failures"], cases["errored"]) == (0, 0)
    assert said["failures"] == [] and said["errors"] == []
    assert acked.happened >= LEAST_ACKS, "it has not got as far as acking what it had received"
    operations = said["operations"]
    # All but the document itself, which it has read to get there.
    described = len(ROUTES) + len(OPERATORS) - 1
    assert (operations["total"], operations["tested"], operations["errored"]) == (described, described, 0)
