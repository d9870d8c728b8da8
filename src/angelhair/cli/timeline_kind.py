"""Whether a queue is what a command for timelines wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angelhair.cli.exits import FAILED, Ended
from angelhair.model import TIMELINE

if TYPE_CHECKING:
    from angelhair.client import Client


def check_kind(client: Client, name: str) -> None:
    """Raises `Ended` for a queue that is no timeline."""
    kind = client.queue(name).kind
    if kind != TIMELINE:
        raise Ended(FAILED, f"queue {name} is of the kind {kind}, and this is for timelines; `angelhair timeline "
                    "create` makes one")
