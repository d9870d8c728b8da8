"""R10 of runs into fifo queues: which keys are known, in what scope, and for how long a run can be gone on with."""

from __future__ import annotations

import pytest

from angelhair import limits
from angelhair.engine.schema import LEDGER, LOGS
from angelhair.engine.store import Change
from angelhair.errors import InvalidRequest, OutcomeUnknown, StoreRefused
from angelhair.model import MessageId, NewMessage
from tests.faults import LOSE_ANSWER, NEVER_SENT
from tests.promises.fifo import QUEUE, make
from tests.promises.fifo_runs import SETTINGS, WINDOW, as_put, batch_of, bodies_of, drained, put_run, refuse, run_of
from tests.queues import MINUTE, SECOND, Server, World

ALWAYS = 1_000
DEAD = "dead"
TOO_LATE = "begun too long ago: which of its 6 messages, from 0-0 on, are in the queue cannot be told any more"


@pytest.fixture(autouse=True)
def small_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHANGE_ROWS", 2)


def said(body: bytes, key: str | None = None, group: str = "g") -> NewMessage:
    return NewMessage(body, key=key, group=group)


def commits(change: Change) -> bool:
    return change.rows[0].values["status"] == "committed"


async def half_put(world: World, batch: list[NewMessage], **options: int) -> None:
    """A try that ends after its first write."""
    failing = world.server()
    failing.store.next("change", LOGS, NEVER_SENT, times=ALWAYS, when=lambda change: change.rows[0].key != 0)
    with pytest.raises(OutcomeUnknown):
        await put_run(failing, batch, **options)  # type: ignore[arg-type]


# --- known keys -------------------------------------------------------------------------------------------------------


async def test_r10_keys_that_were_there_before_are_known_and_doubles_are(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    await server.put(QUEUE, b"before", key="k", group="g")
    batch = [said(b"a", "k"), said(b"b", "new"), said(b"c"), said(b"d", "new"), said(b"b", "new")]
    assert await put_run(server, batch) == {0, 3, 4}
    # Of another run with the same messages all keys are known.
    assert await put_run(world.server(), batch, "other") == {0, 1, 3, 4}
    assert await drained(server) == {"g": [b"before", b"b", b"c", b"c"]}


async def test_r10_what_was_put_a_moment_ago_by_another_server_is_known(world: World) -> None:
    """Though this one has not heard of it: it remembers where the log ended."""
    server, other = world.server(), world.server()
    await make(server, **SETTINGS)
    await server.put(QUEUE, b"-", key="-", group="g")
    await other.put(QUEUE, b"a", key="k", group="g")
    assert await put_run(server, [said(b"a", "k"), said(b"b", "l")]) == {0}


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize(("body", "known"), [(b"theirs", {1}), (b"a", set[int]())])
async def test_r10_a_key_that_another_puts_at_the_same_time(
    world: World, resumed: bool, body: bytes, known: set[int]
) -> None:
    """What it says shows whose it is. One that says the very same is as good as ours."""
    server, other = world.server(), world.server()
    await make(server, **SETTINGS)
    batch = [said(b"first"), said(b"a", "k"), said(b"b", "l")]

    async def meanwhile() -> None:
        await other.put(QUEUE, body, key="k", group="g")

    server.store.next("change", LOGS, meanwhile)
    if resumed:
        server.store.next("change", LEDGER, NEVER_SENT, times=ALWAYS, when=commits)
        with pytest.raises(OutcomeUnknown):
            await put_run(server, batch)
        server.store.heal()
    assert await put_run(server, batch) == known
    assert await drained(server) == {"g": [body, b"first", b"b"]}


async def test_r10_a_key_that_another_group_has_is_anothers(world: World) -> None:
    server, other = world.server(), world.server()
    await make(server, **SETTINGS)

    async def meanwhile() -> None:
        await other.put(QUEUE, b"a", key="k", group="theirs")

    server.store.next("change", LOGS, meanwhile)
    assert await put_run(server, [said(b"a", "k")]) == {0}


@pytest.mark.parametrize("lanes", [1, 3])
async def test_r10_the_scope_of_a_key_is_its_group_where_the_queue_says_so(world: World, lanes: int) -> None:
    server = world.server()
    await make(server, **SETTINGS, lanes=lanes, dedup_scope="group")
    groups = [f"g{number}" for number in range(6)]
    await server.put(QUEUE, b"before", key="k", group="g0")
    batch = [said(b"%d" % number, "k", group) for group in groups for number in range(2)]
    failing = world.server()
    failing.store.next("change", LEDGER, NEVER_SENT, times=ALWAYS, when=commits)
    with pytest.raises(OutcomeUnknown):
        await put_run(failing, batch)
    assert await put_run(server, batch) == {0, 1, 3, 5, 7, 9, 11}
    assert await drained(server) == {"g0": [b"before"], **{group: [b"0"] for group in groups[1:]}}


async def test_r10_who_accepts_no_known_keys_is_told_every_time_and_the_run_stays_open(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    await server.put(QUEUE, b"before", key="k", group="g")
    batch = [said(b"a", "k"), said(b"b", "l")]
    for tried in (server, world.server(), server):
        with pytest.raises(InvalidRequest, match="1 are known"):
            await put_run(tried, batch, accept=refuse)
    assert await put_run(server, batch) == {0}
    assert await put_run(server, batch, accept=refuse) is None
    # The same rows again, under their own name, are no conflict with themselves: not when they are tried twice either.
    other = [said(b"c", "m"), said(b"d")]
    server.store.next("change", LEDGER, LOSE_ANSWER, times=ALWAYS, when=commits)
    with pytest.raises(OutcomeUnknown):
        await put_run(server, other, "other", refuse)
    server.store.heal()
    assert await put_run(server, other, "other", refuse) is None
    assert await drained(server) == {"g": [b"before", b"b", b"c", b"d"]}


async def test_r10_what_an_earlier_try_has_put_is_no_conflict(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS)
    batch = batch_of(6)
    await half_put(world, batch)
    assert await put_run(server, batch, accept=refuse) == set()
    assert await drained(server) == as_put(batch)


# --- moved messages ---------------------------------------------------------------------------------------------------


async def let_go(server: Server, name: str) -> None:
    """What has used up its deliveries is moved."""
    assert await server.receive(name) == []
    await server.work(name)


async def test_r07_r10_a_message_of_a_run_that_was_moved_away_is_not_put_again(world: World) -> None:
    """And one that comes back, or comes with a key of the run, is a message of its own."""
    server = world.server()
    await make(server, DEAD)
    await make(server, **SETTINGS, max_deliveries=1, dead_letter_queue=DEAD)
    batch = [said(b"m%d" % number, "k" if number == 1 else None) for number in range(6)]
    await half_put(world, batch)
    for body in (b"m0", b"m1"):
        assert bodies_of(await server.receive(QUEUE)) == [body]
        world.wait(SECOND)
        await let_go(server, QUEUE)
    assert await server.engine.redrive(world.account, DEAD, QUEUE, 1) == 1
    assert await put_run(world.server(), batch) == set()
    assert bodies_of(await server.drain(DEAD)) == [b"m1"]
    assert (await drained(server))["g"] == [b"m0", *[b"m%d" % number for number in range(2, 6)]]


async def test_r07_r10_a_message_that_was_moved_here_has_no_key_of_this_queue(world: World) -> None:
    server = world.server()
    await make(server, DEAD)
    await make(server, "source", max_deliveries=1, dead_letter_queue=DEAD, visibility_timeout_ms=SECOND)
    await server.put("source", b"theirs", key="k", group="g")
    assert bodies_of(await server.receive("source")) == [b"theirs"]
    world.wait(SECOND)
    await let_go(server, "source")
    assert await put_run(server, [said(b"ours", "k")], name=DEAD, accept=refuse) == set()
    assert await drained(server, DEAD) == {"g": [b"theirs", b"ours"]}


# --- for how long -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retry_ms", "dedup_ms", "lasts_ms"),
    [(10 * WINDOW, WINDOW, WINDOW), (WINDOW, 10 * WINDOW, WINDOW), (WINDOW, WINDOW, WINDOW)],
)
async def test_r10_a_run_lapses_with_its_window_or_with_the_queues(
    world: World, retry_ms: int, dedup_ms: int, lasts_ms: int
) -> None:
    server = world.server()
    await make(server, **SETTINGS, dedup_window_ms=dedup_ms)
    batch, other = batch_of(6), batch_of(4)
    begun = await server.engine.begin_run(world.account, QUEUE, run_of(batch, window_ms=retry_ms))
    assert begun is not None
    assert await server.engine.begin_run(world.account, QUEUE, run_of(other, "other", retry_ms)) is not None
    world.wait(lasts_ms - 1)
    assert await put_run(world.server(), other, "other", window_ms=retry_ms) == set()
    world.wait(1)
    with pytest.raises(StoreRefused, match=TOO_LATE):
        await world.server().engine.begin_run(world.account, QUEUE, run_of(batch, window_ms=retry_ms))
    with pytest.raises(StoreRefused, match=TOO_LATE):
        await server.engine.finish_run(begun, batch)
    assert await drained(server) == as_put(other)
    # What is done is known to be for much longer.
    assert await put_run(server, other, "other", window_ms=retry_ms) is None


async def test_r10_a_window_that_was_made_shorter_is_the_runs_too(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS, dedup_window_ms=WINDOW)
    batch = batch_of(6)
    await half_put(world, batch)
    await server.engine.change_queue(world.account, QUEUE, {"dedup_window_ms": SECOND})
    world.wait(MINUTE)
    with pytest.raises(StoreRefused, match=TOO_LATE):
        await put_run(world.server(), batch)


async def test_r10_who_sleeps_between_two_writes_beyond_the_window_puts_nothing_more(world: World) -> None:
    """The other's messages of the same run are forgotten by then: he would put them again."""
    sleeper, other = world.server(), world.server()
    await make(other, **SETTINGS, dedup_window_ms=WINDOW)
    batch = batch_of(6)

    async def for_long() -> None:
        assert await put_run(other, batch) == set()
        world.wait(WINDOW + 2 * limits.CLOCK_ERROR_MS + 1)

    sleeper.store.next("change", LOGS, for_long, when=lambda change: change.rows[0].key == 2)
    with pytest.raises(StoreRefused, match=TOO_LATE):
        await put_run(sleeper, batch)
    assert await drained(other) == as_put(batch)


async def test_r10_who_sleeps_with_a_write_on_its_way_finds_it(world: World) -> None:
    """It landed; that the window is over does not make it unknown. What follows is not sent."""
    sleeper, other = world.server(), world.server()
    await make(other, **SETTINGS, dedup_window_ms=WINDOW)
    batch = batch_of(6)
    at_first = {"when": lambda change: change.rows[0].key == 0}

    async def for_long() -> None:
        await other.put(QUEUE, b"theirs", key="theirs", group="theirs")
        world.wait(WINDOW + 2 * limits.CLOCK_ERROR_MS + 1)

    sleeper.store.next("change", LOGS, LOSE_ANSWER, **at_first)  # type: ignore[arg-type]
    sleeper.store.next("change", LOGS, for_long, **at_first)  # type: ignore[arg-type]
    with pytest.raises(StoreRefused, match=TOO_LATE):
        await put_run(sleeper, batch)
    assert await drained(other) == {**as_put(batch[:2]), "theirs": [b"theirs"]}


@pytest.mark.parametrize("ahead_ms", [-1, 1])
async def test_r10_clocks_that_are_wrong_by_their_allowed_error_double_nothing(world: World, ahead_ms: int) -> None:
    """One dates early and another late; the third looks at the last moment, when a key of the same age would go."""
    error_ms = ahead_ms * (limits.CLOCK_ERROR_MS - 1)
    begins, puts, goes_on = [world.server(ahead_ms=ahead) for ahead in (error_ms, -error_ms, error_ms)]
    await make(begins, **SETTINGS, dedup_window_ms=WINDOW)
    batch = batch_of(6)
    begun = await begins.engine.begin_run(world.account, QUEUE, run_of(batch))
    assert begun is not None
    await clocks_checked(puts, goes_on)
    puts.store.next("change", LEDGER, NEVER_SENT, times=ALWAYS)
    with pytest.raises(OutcomeUnknown):
        await put_run(puts, batch)
    world.wait(WINDOW - 1)
    await clocks_checked(goes_on)
    assert await put_run(goes_on, batch) == set()
    assert await drained(begins) == as_put(batch)


async def clocks_checked(*servers: Server) -> None:
    for server in servers:
        await server.engine.memory.glance_at_clock()
        assert server.engine.memory.clock_is_good(server.clock.now())


@pytest.mark.parametrize("ahead_ms", [-100 * WINDOW, 100 * WINDOW])
async def test_r05_r10_the_wrong_clock_of_a_server_is_not_a_runs_time(world: World, ahead_ms: int) -> None:
    server, wrong = world.server(), world.server(ahead_ms=ahead_ms)
    await make(server, **SETTINGS, dedup_window_ms=WINDOW)
    batch = batch_of(6)
    begun = await wrong.engine.begin_run(world.account, QUEUE, run_of(batch))
    assert begun is not None
    assert await put_run(server, batch) == set()
    assert await wrong.engine.finish_run(begun, batch) == set()
    assert await drained(server) == as_put(batch)


async def test_r10_a_committed_run_outlives_the_window(world: World) -> None:
    server = world.server()
    await make(server, **SETTINGS, dedup_window_ms=WINDOW)
    batch = batch_of(6)
    assert await put_run(server, batch) == set()
    world.wait(2 * WINDOW)
    assert await put_run(world.server(), batch) is None
    assert await server.put_outcomes(QUEUE, [batch[0]]) == [MessageId(0, 6)], "a put of its own knows the key no more"
