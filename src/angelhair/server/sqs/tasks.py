"""Move tasks as they are kept: with the queue that messages are moved out of, among its notes, the newest first.

A task is its row of the notes: whoever works on it writes there how far it has come, and reads there whether it is to
go on. It belongs to one server at a time; when that one has not been heard of for a while, another takes it over.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence

import msgspec

from angelhair import limits
from angelhair.engine.catalog import Queue, Rewrite, Rewritten

RUNNING, COMPLETED, CANCELLED, FAILED = "RUNNING", "COMPLETED", "CANCELLED", "FAILED"
NOTE = "move_tasks"


class MoveTask(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    status: str
    started_at_ms: int
    to_move: int
    destination: str | None = None
    """The name of a queue; None moves each message to the queue that it came from."""
    rate: int | None = None
    """Messages a second, at most."""
    moved: int = 0
    owner: str = ""
    """The server that works on it."""
    beat: int = 0
    """Grows whenever that server writes."""
    reason: str | None = None
    """Why it failed."""


def tasks_of(queue: Queue) -> list[MoveTask]:
    return msgspec.convert(queue.notes.get(NOTE, []), list[MoveTask])


def running(queue: Queue) -> MoveTask | None:
    return next((task for task in tasks_of(queue) if task.status == RUNNING), None)


def adding(task: MoveTask, refuse: Callable[[MoveTask], Exception]) -> Rewrite:
    """Adds a task, unless another is running: then what `refuse` says of it is raised."""

    def rewrite(queue: Queue) -> Rewritten:
        other = running(queue)
        if other is not None and other.id != task.id:
            raise refuse(other)
        kept = [known for known in tasks_of(queue) if known.id != task.id]
        return _with(queue, [task, *kept][: limits.AWS_MOVE_TASKS_LISTED])

    return rewrite


class Gone(Exception):
    """The task is not running any more, or is another server's now."""


def changing(task_id: str, change: Callable[[MoveTask], MoveTask]) -> Rewrite:
    """Writes what `change` makes of the task. It may raise `Gone`."""

    def rewrite(queue: Queue) -> Rewritten:
        tasks = tasks_of(queue)
        if all(task.id != task_id for task in tasks):
            raise Gone
        return _with(queue, [change(task) if task.id == task_id else task for task in tasks])

    return rewrite


def _with(queue: Queue, tasks: Sequence[MoveTask]) -> Rewritten:
    return Rewritten({}, {**queue.notes, NOTE: msgspec.to_builtins(tasks)})


# --- handles ----------------------------------------------------------------------------------------------------------


class Handle(msgspec.Struct, rename="camel"):
    """What a client knows a task by."""

    task_id: str
    source_arn: str


def encode_handle(task_id: str, source_arn: str) -> str:
    return b64encode(msgspec.json.encode(Handle(task_id, source_arn))).decode()


def decode_handle(text: str) -> Handle | None:
    """None when we never gave it out."""
    try:
        return msgspec.json.decode(b64decode(text, validate=True), type=Handle)
    except (ValueError, msgspec.DecodeError):
        return None
