"""What a description of one request at a time cannot say, said to schemathesis; loaded by its command.

Only cases that are meant to be valid are touched,
and only where the document's words, but not its schemas, forbid them.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
import schemathesis
from schemathesis import Case, HookContext
from schemathesis.generation.meta import TestPhase

from angelhair.model import BUCKETED, FIFO
from angelhair.model.settings import NOT_OF_KIND

NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.IGNORECASE)

SHORT_WAIT_SECONDS = 0.02
"""In place of any longer wait: that a receive waits for as long as it is told is another test's subject."""


OF_A_RECEIPT = "/message/{receipt}"
OF_TIMELINES = ("/consumers/{consumer}", "/shards")
TIMELINE = "reminders"


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, Any]) -> None:
    query = case.query or {}
    if NUMBER.fullmatch(wait := str(query.get("wait"))) and SHORT_WAIT_SECONDS < float(wait) <= 60:
        query["wait"] = SHORT_WAIT_SECONDS
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if "delay" in query and "due" in query:
        # One or the other: OpenAPI has no way to say it of parameters.
        del query["delay"]
    if case.path_parameters and "queue" in case.path_parameters:
        # Only a timeline has shards, and it has no keys, no buckets and no purge; the test makes one.
        if case.operation.path.endswith(OF_TIMELINES):
            case.path_parameters["queue"] = TIMELINE
        elif case.path_parameters["queue"] == TIMELINE:
            case.path_parameters["queue"] = "orders"
        # Nor have other queues consumers.
        query.pop("consumer", None)
    if case.operation.path.endswith(OF_A_RECEIPT) and case.meta.phase.name is TestPhase.FUZZING:
        # One at random has the right form and was never issued; the other phases try those.
        receipt = _true_receipt(str(case.operation.base_url), case.path_parameters["queue"])
        case.path_parameters["receipt"] = receipt or case.path_parameters["receipt"]
    if "lane" in query:
        # Which lanes a queue has is not for a schema to say; lane 0 is always there.
        query["lane"] = 0
    if isinstance(case.body, dict):
        if "lane" in case.body:
            case.body["lane"] = 0
        # Only a timeline has them, and what a queue is, is decided below.
        case.body.pop("shards", None)
        for parameter, plain in (("queue", "bucketed"), ("topic", "standard")):
            if "kind" in case.body and (name := (case.path_parameters or {}).get(parameter)):
                # The name says it, and the body may only agree.
                case.body["kind"] = "fifo" if str(name).endswith(".fifo") else plain
        if queue := (case.path_parameters or {}).get("queue"):
            # Nor has a queue what is of other kinds.
            for name in NOT_OF_KIND[FIFO if str(queue).endswith(".fifo") else BUCKETED]:
                case.body.pop(name.removesuffix("_ms"), None)
        for field in ("dead_letter_queue", "destination"):
            # Neither can be the queue itself.
            if field in case.body and case.body[field] == case.path_parameters.get("queue"):
                case.body[field] = None


def _true_receipt(url: str, queue: str) -> str | None:
    """Of a message that is put for it; into a queue that is made for it, if a case has deleted the one that was there.
    None where other cases have left the queue such that nothing can be received."""
    with httpx.Client(base_url=url) as client:
        client.put(f"/queues/{queue}", json={})
        client.put(f"/queues/{queue}/message", params={"delay": 0}, content=b"to be received")
        received: list[dict[str, str]] = client.get(f"/queues/{queue}/messages/1").json().get("messages")
    return received[0]["receipt"] if received else None
