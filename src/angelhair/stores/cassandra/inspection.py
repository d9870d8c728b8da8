"""Looks at the nodes themselves for what makes a Cassandra unsafe for a queue, and says it in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cassandra.cluster import Session

from angelhair.clock import Clock
from angelhair.limits import CLOCK_ERROR_MS

OLDEST_SAFE_VERSION = (4, 1, 6)
"""The first with a Paxos v2 that has no known fault of correctness."""

GROUP_WINDOW_MILLISECONDS_MOST = 2
"""A conditional write waits for several syncs: with a window of 10 ms it takes 40."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)?")
_MILLISECONDS = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1000.0, None: 1.0}


def inspect_nodes(session: Session, clock: Clock) -> list[str]:
    """One line per danger and node. A node that cannot be asked is one of them."""
    warnings: list[str] = []
    for host in session.cluster.metadata.all_hosts():
        name = str(host.address)
        try:
            version = str(session.execute("SELECT release_version FROM system.local", host=host).one()[0])
            settings = {
                row[0]: row[1]
                for row in session.execute(
                    "SELECT name, value FROM system_views.settings WHERE name IN "
                    "('paxos_variant', 'commitlog_sync', 'commitlog_sync_group_window')",
                    host=host,
                )
            }
            before_ms = clock.now().wall_ms
            node_ms = int(session.execute("SELECT toUnixTimestamp(now()) FROM system.local", host=host).one()[0])
            after_ms = clock.now().wall_ms
        except Exception as error:  # noqa: BLE001  whatever hinders the look is what there is to report
            warnings.append(f"node {name} could not be inspected: {error}")
            continue
        warnings += version_warnings(name, version)
        warnings += settings_warnings(name, settings)
        warnings += clock_warnings(name, before_ms, node_ms, after_ms)
    return warnings


def version_warnings(node: str, version: str) -> Iterator[str]:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    if numbers < OLDEST_SAFE_VERSION:
        wanted = ".".join(str(number) for number in OLDEST_SAFE_VERSION)
        yield f"node {node} runs Cassandra {version}; conditional writes are only trusted from {wanted} on"


def settings_warnings(node: str, settings: dict[str, str]) -> Iterator[str]:
    variant = settings.get("paxos_variant")
    if variant != "v2":
        yield f"node {node} has paxos_variant {variant}: set it to v2, which halves what a conditional write costs"
    sync = settings.get("commitlog_sync")
    if sync == "group":
        window_milliseconds = _in_milliseconds(settings.get("commitlog_sync_group_window"))
        if window_milliseconds is None or window_milliseconds > GROUP_WINDOW_MILLISECONDS_MOST:
            yield (
                f"node {node} syncs its commit log in groups of {settings.get('commitlog_sync_group_window')}: above "
                f"{GROUP_WINDOW_MILLISECONDS_MOST} ms every conditional write is slow; set commitlog_sync to batch"
            )
    elif sync != "batch":
        yield (
            f"node {node} has commitlog_sync {sync}: CONFIRMED MESSAGES ARE LOST when the replicas die together. "
            "Set commitlog_sync to batch"
        )


def clock_warnings(node: str, before_ms: int, node_ms: int, after_ms: int) -> Iterator[str]:
    """The node read its clock somewhere between our two readings."""
    error_ms = max(before_ms - node_ms, node_ms - after_ms, 0)
    if error_ms > CLOCK_ERROR_MS:
        yield (
            f"the clock of node {node} is {error_ms / 1000:.1f} s away from this server's: "
            "nothing expires and nothing is dropped while it is"
        )


def _in_milliseconds(text: str | None) -> float | None:
    found = _DURATION.fullmatch((text or "").strip())
    return float(found.group(1)) * _MILLISECONDS[found.group(2)] if found else None
