"""The language of the stories: what each sentence does, and what it answers. docs/scenarios.md tells how to write one.

A sentence is one line. Each is a regular expression and a coroutine in `SENTENCES`; a line that none of them knows is
an error, so that a slip of the pen is not taken for prose.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from angelhair.engine.schema import BODIES, POINTERS, SEQUENCES, STATES, WAKES
from angelhair.engine.store import Table
from angelhair.model import Ask, DueId, MessageId, NewMessage, QueueSettings, WantedChange
from tests.faults import LOSE_ANSWER, UNAVAILABLE
from tests.queues import DAY, HOUR, MINUTE, SECOND, YEAR, Server, succeeded
from tests.scenarios import looking
from tests.scenarios.story import WHERE_TO_LOOK, Answer, Handler, Sentence, Slip, Story

UNITS_MS = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY, "year": YEAR}
DURATION = r"(?:a|an|\d+) (?:second|minute|hour|day|year)s?"
TABLES: dict[str, Table] = {
    "marks": POINTERS, "states": STATES, "bodies": BODIES, "ids": SEQUENCES, "wake index": WAKES,
}
TABLE = "|".join(TABLES)
WORDS = {
    "duration": DURATION, "name": r"[\w.-]+", "id": r"L?\d+(?:-\d+)?", "number": r"\d+", "server": "[A-Z]",
    "table": TABLE,
}

SENTENCES: list[Sentence] = []


def sentence(pattern: str) -> Callable[[Handler], Handler]:
    """Words in angle brackets stand for what a sentence is about. It may end with the server that it is said to."""
    expression = pattern
    for word, meaning in WORDS.items():
        expression = expression.replace(f"<{word}>", f"({meaning})")
    expression = expression.replace("<text>", '"(.*?)"')

    def register(handler: Handler) -> Handler:
        SENTENCES.append((re.compile(expression + "(?: at ([A-Z]))?"), handler))
        return handler

    return register


def milliseconds(text: str) -> int:
    count, unit = text.split(" ")
    return (1 if count in ("a", "an") else int(count)) * UNITS_MS[unit.rstrip("s")]


SETTINGS: list[tuple[str, Callable[[re.Match[str]], dict[str, Any]]]] = [
    (r"buckets of (\d+)", lambda found: {"bucket_size": int(found[1])}),
    (rf"a repair time-out of ({DURATION})", lambda found: {"repair_timeout_ms": milliseconds(found[1])}),
    (rf"messages hidden for ({DURATION})", lambda found: {"visibility_timeout_ms": milliseconds(found[1])}),
    (rf"messages kept for ({DURATION})", lambda found: {"retention_ms": milliseconds(found[1])}),
    (rf"a history of ({DURATION})", lambda found: {"history_ms": milliseconds(found[1])}),
    (r"no history", lambda found: {"history_ms": 0}),
    (r"(\d+) lanes?", lambda found: {"lanes": int(found[1])}),
    (r"dead letters in ([\w.-]+) after (\d+) deliver(?:y|ies)",
     lambda found: {"dead_letter_queue": found[1], "max_deliveries": int(found[2])}),
]


def settings(text: str) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for part in re.split(r", | and ", text):
        found = [(match, setting) for pattern, setting in SETTINGS if (match := re.fullmatch(pattern, part))]
        if not found:
            raise Slip(f"no setting reads {part!r}; {WHERE_TO_LOOK}")
        for match, setting in found:
            chosen.update(setting(match))
    return chosen


# --- queues ---------------------------------------------------------------------------------------------------------


@sentence("a queue <name> with (.+?)")
async def create(story: Story, server: Server, name: str, chosen: str) -> Answer:
    _, made = await server.engine.create_queue(story.world.account, name, QueueSettings(**settings(chosen)))
    if name not in story.queues:
        story.queues.append(name)
    return ["made" if made else "was there"]


@sentence("<name> gets (.+?)")
async def change_queue(story: Story, server: Server, name: str, chosen: str) -> Answer:
    await server.engine.change_queue(story.world.account, name, settings(chosen))
    return ["changed"]


@sentence("<name> is deleted")
async def delete(story: Story, server: Server, name: str) -> Answer:
    await server.engine.delete_queue(story.world.account, name)
    story.queues.remove(name)
    return ["deleted"]


@sentence("<name> is purged")
async def purge(story: Story, server: Server, name: str) -> Answer:
    await server.engine.purge(story.world.account, name)
    return ["purged"]


# --- producers ------------------------------------------------------------------------------------------------------


@sentence("producer takes <number> ids? of <name>")
async def reserve(story: Story, server: Server, count: str, name: str) -> Answer:
    reservation = await server.engine.reserve(story.world.account, name, int(count))
    taken = range(reservation.first, reservation.first + int(count))
    for number in taken:
        identity = looking.reference(MessageId(reservation.lane.number, number))
        story.taken[name, identity] = reservation._replace(first=number)
    return [f"takes {looking.runs(taken)}"]


@sentence("producer writes <id> of <name>(?:, saying <text>)?")
async def write(story: Story, server: Server, identity: str, name: str, text: str | None) -> Answer:
    message = NewMessage(text.encode() if text else b"-")
    reservation = story.taken.pop((name, identity), None)
    if reservation is None:
        raise Slip(f"nobody has taken {identity} of {name}, or it is written already")
    lane = server.engine.memory.lane(reservation.queue, reservation.lane.number)
    (outcome,) = await server.engine.put_reserved(reservation._replace(lane=lane), [message])
    given = looking.reference(succeeded(outcome))
    return ["confirmed"] if given == identity else [f"{identity} is of no use any more; confirmed as {given}"]


@sentence("producer puts <number> messages? into <name>(?:, delayed by <duration>)?")
async def put_many(story: Story, server: Server, count: str, name: str, delay: str | None) -> Answer:
    message = NewMessage(b"-", delay_ms=milliseconds(delay) if delay else None)
    return _confirmed(story, await server.put_outcomes(name, [message] * int(count)))


@sentence("producer puts <text> into <name>(?:, delayed by <duration>)?(?:, under the key <text>)?")
async def put_one(
    story: Story, server: Server, text: str, name: str, delay: str | None, key: str | None
) -> Answer:
    message = NewMessage(text.encode(), delay_ms=milliseconds(delay) if delay else None, key=key)
    return _confirmed(story, await server.put_outcomes(name, [message]))


def _confirmed(story: Story, outcomes: list[Any]) -> Answer:
    lanes: dict[int, list[int]] = {}
    late: list[str] = []
    for outcome in outcomes:
        identity = succeeded(outcome)
        if isinstance(identity, DueId):
            late.append(story.called(identity))
        else:
            lanes.setdefault(identity.lane, []).append(identity.number)
    return [
        f"confirmed as {looking.runs(found)}" + (f" of lane {lane}" if lane else "") for lane, found in lanes.items()
    ] + [f"confirmed as {name}, which waits in the delay line" for name in late]


# --- consumers ------------------------------------------------------------------------------------------------------


@sentence("consumer asks <name> for <number>(?:, hiding (?:it|them) for <duration>)?")
async def receive(story: Story, server: Server, name: str, count: str, hide: str | None) -> Answer:
    ask = Ask(int(count), milliseconds(hide) if hide else None)
    (outcome,) = await server.engine.receive(story.world.account, name, [ask])
    got = succeeded(outcome)
    for delivery in got:
        story.held.setdefault((name, story.called(delivery.id)), []).append(delivery)
    return looking.deliveries(got, story.called)


@sentence("consumer acks <id>(?: to <id>)? of <name>(?: with the receipt of delivery <number>)?")
async def ack(
    story: Story, server: Server, first: str, last: str | None, name: str, delivery: str | None
) -> Answer:
    if last is not None and "-" in first + last:
        raise Slip("a run of ids is of the first lane; ack those of other lanes one by one")
    identities = [first] if last is None else [str(number) for number in range(int(first), int(last) + 1)]
    outcomes = await server.ack(name, *(story.receipt(name, identity, delivery) for identity in identities))
    return list(dict.fromkeys("acked" if outcome is None else f"refused: {outcome}" for outcome in outcomes))


@sentence("consumer (extends|shortens) <id> of <name> to <duration>")
async def extend(story: Story, server: Server, _word: str, identity: str, name: str, hide: str) -> Answer:
    outcome = await server.extend(name, story.receipt(name, identity, None), milliseconds(hide))
    return ["done" if outcome is None else f"refused: {outcome}"]


@sentence("consumer gives <id> of <name> back")
async def release(story: Story, server: Server, identity: str, name: str) -> Answer:
    outcome = await server.extend(name, story.receipt(name, identity, None), 0)
    return ["done" if outcome is None else f"refused: {outcome}"]


@sentence("consumer rewrites <id> of <name> as <text>(?: with the receipt of delivery <number>)?")
async def rewrite(
    story: Story, server: Server, identity: str, name: str, text: str, delivery: str | None
) -> Answer:
    receipt = story.receipt(name, identity, delivery).receipt
    (outcome,) = await server.engine.change(story.world.account, name, [WantedChange(receipt, body=text.encode())])
    return ["done" if outcome is None else f"refused: {outcome}"]


# --- time and servers -----------------------------------------------------------------------------------------------


@sentence("<duration> pass(?:es)?")
async def wait(story: Story, server: Server, duration: str) -> Answer:
    story.world.wait(milliseconds(duration))
    return []


@sentence("servers? ([A-Z](?: and [A-Z])*) works?(?: for <duration>)?")
async def work(story: Story, _server: Server, names: str, duration: str | None) -> Answer:
    servers = [story.server(name) for name in names.split(" and ")]
    remaining = milliseconds(duration) if duration else 0
    # Long times pass in larger strides, so that hours of work take no more steps than a minute of it.
    stride = max(SECOND, remaining // 60)
    while True:
        for queue in story.queues:
            for server in servers:
                await server.step(queue)
        if remaining <= 0:
            return []
        story.world.wait(min(stride, remaining))
        remaining -= stride


@sentence("server <server> dies")
async def die(story: Story, _server: Server, name: str) -> Answer:
    if story.servers.pop(name, None) is None:
        raise Slip(f"there is no server {name} that could die")
    return []


@sentence("server <server>'s clock is <duration> (ahead|behind)")
async def skew(story: Story, _server: Server, name: str, duration: str, direction: str) -> Answer:
    story.server(name).clock.ahead_ms = milliseconds(duration) * (1 if direction == "ahead" else -1)
    return []


@sentence("the gravedigger works")
async def bury(story: Story, server: Server) -> Answer:
    await server.bury()
    return []


# --- operators ------------------------------------------------------------------------------------------------------


@sentence("look at <name>")
async def look(story: Story, _server: Server, name: str) -> Answer:
    return await looking.look(story.world, name)


@sentence("list the queues")
async def list_queues(story: Story, server: Server) -> Answer:
    names, _ = await server.engine.list_queues(story.world.account)
    return [", ".join(names) or "none"]


@sentence("peek into <name>")
async def peek(story: Story, server: Server, name: str) -> Answer:
    found = await server.engine.peek(story.world.account, name, 100)
    return [f"sees {looking.runs(item.id.number for item in found)}" if found else "sees nothing"]


@sentence("count <name>")
async def count(story: Story, server: Server, name: str) -> Answer:
    stats = await server.engine.stats(story.world.account, name)
    return [f"{stats.visible} visible, {stats.in_flight} in flight, {stats.delayed} delayed, {stats.dead} dead"]


@sentence("operator redrives <number> messages? of <name>(?: to <name>)?")
async def redrive(story: Story, server: Server, most: str, name: str, destination: str | None) -> Answer:
    return [f"moved {await server.engine.redrive(story.world.account, name, destination, int(most))}"]


@sentence("operator moves the repair mark of <name> back to bucket <number>")
async def move_back(story: Story, server: Server, name: str, bucket: str) -> Answer:
    return [f"it stands at {await server.engine.move_back(story.world.account, name, 0, int(bucket))}"]


# --- what goes wrong ------------------------------------------------------------------------------------------------


@sentence("when server <server> next (read|change|write)s the <table>, just before:")
async def interrupt(
    story: Story, _server: Server, name: str, verb: str, table: str, meanwhile: Callable[[], Awaitable[None]]
) -> Answer:
    # A bucket's flags lie beside its states; a story that says states means messages.
    messages = verb == "change" and table == "states"
    when = (lambda change: bool(change.rows)) if messages else (lambda change: True)
    story.interruptions.append(story.server(name).store.next(verb, TABLES[table], meanwhile, when=when))
    return []


@sentence("the answer to server <server>'s next (change|write) of the <table> is lost")
async def lose_answer(story: Story, _server: Server, name: str, verb: str, table: str) -> Answer:
    when = (lambda change: bool(change.rows)) if table == "states" else (lambda change: True)
    story.interruptions.append(story.server(name).store.next(verb, TABLES[table], LOSE_ANSWER, when=when))
    return []


@sentence("server <server>'s next <number> (read|change|write)s of the <table> fail")
async def fail(story: Story, _server: Server, name: str, times: str, verb: str, table: str) -> Answer:
    rule = story.server(name).store.next(verb, TABLES[table], UNAVAILABLE, times=int(times))
    story.interruptions.append(rule)
    return []
