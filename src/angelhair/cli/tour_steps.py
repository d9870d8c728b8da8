"""The tour's steps, in the order in which they are told. Each makes real calls and checks what it says."""

from __future__ import annotations

import signal

from angelhair.cli.tour_telling import short
from angelhair.cli.tour_world import TourWorld, expect, ids_of
from angelhair.errors import InvalidReceipt, StaleReceipt
from angelhair.model import MessageId, NewMessage, QueueSettings

ORDERS, LETTERS = "orders", "letters"

BUCKET_SIZE = 4
"""Far smaller than anybody would choose: so a few messages show what otherwise takes thousands."""

PATIENT_VISIBILITY_MS = 300_000
"""Longer than the tour: what one step holds must not come back in another."""

SHORT_VISIBILITY_MS = 2_000
"""Long enough to be seen to be invisible, short enough to wait for."""

DEAD_SERVER_VISIBILITY_MS = 5_000
"""What the killed server asks for: longer than a busy machine takes from there to the kill."""

NOTICED_MS = 500
"""A shorter wait is not worth a sentence."""

REPAIR_TIMEOUT_MS = 500
"""How long repair waits for the missing message of step 6."""


async def create(world: TourWorld) -> None:
    teller = world.teller
    teller.heading("A queue is made")
    settings = QueueSettings(bucket_size=BUCKET_SIZE, visibility_timeout_ms=PATIENT_VISIBILITY_MS)
    _, made = await world.engine.create_queue(world.account, ORDERS, settings)
    expect(made, "the queue is new")
    teller.did(f'create_queue("{ORDERS}", bucket_size={BUCKET_SIZE})', f"made in {world.path.name}")
    _, again = await world.engine.create_queue(world.account, ORDERS, settings)
    expect(not again, "creating it again with the same settings finds it")
    names, _ = await world.other.list_queues(world.account)
    expect(names == [ORDERS], "a second server on the same file sees the queue")
    teller.say(
        "A second server on the same file sees it at once: nothing is kept in a server that the store does not hold. "
        f"Messages live in buckets, here of {BUCKET_SIZE} so that the pictures stay small."
    )


async def put(world: TourWorld) -> None:
    teller = world.teller
    teller.heading("Six messages are put")
    bodies = [b"tea", b"rice", b"salt", b"oil", b"soap", b"wine"]
    ids = ids_of(await world.engine.put(world.account, ORDERS, [NewMessage(body) for body in bodies]))
    expect([item.number for item in ids] == list(range(len(bodies))), "ids grow by one, from 0")
    teller.did('put("tea", "rice", "salt", "oil", "soap", "wine")', "ids " + ", ".join(str(item) for item in ids))
    teller.say(
        "Lane, dash, number. Each id belongs to the bucket that its number falls into; all six were reserved by one "
        "conditional write. A confirmed put is on the disk: SQLite has synced its log before the ids came back."
    )
    await world.draw(ORDERS)


async def receive_and_ack(world: TourWorld) -> None:
    teller = world.teller
    teller.heading("Two are received, one is acked")
    first, second = await world.receive(ORDERS, 2)
    expect((first.body, second.body) == (b"tea", b"rice"), "the oldest messages come first")
    for delivery in (first, second):
        teller.did("receive()", f"{delivery.id} {delivery.body.decode()!r}, receipt {short(delivery.receipt)}")
    outcomes = await world.engine.ack(world.account, ORDERS, [first.receipt])
    expect(outcomes == [None], "the receipt of the newest delivery settles the message")
    teller.did(f"ack({short(first.receipt)})", "settled")
    stats = await world.engine.stats(world.account, ORDERS)
    expect((stats.visible, stats.in_flight) == (4, 1), "four wait and one is in flight")
    teller.say(
        f"Now {stats.visible} wait, {stats.in_flight} is in flight (invisible to others for 5 minutes), one is done."
    )
    world.notes["rice"] = second.receipt
    await world.draw(ORDERS)


async def redeliver(world: TourWorld) -> None:
    teller = world.teller
    teller.heading("A consumer falls asleep, and its receipt goes stale")
    (first,) = await world.receive(ORDERS, 1, SHORT_VISIBILITY_MS)
    teller.did(
        f"receive(visibility={SHORT_VISIBILITY_MS / 1000:g} s)",
        f"{first.id} {first.body.decode()!r}, delivery {first.deliveries}, receipt {short(first.receipt)}",
    )
    seen = await world.engine.peek(world.account, ORDERS, 10)
    if world.time.clock.now().wall_ms < first.visible_at_ms:
        expect(first.id not in [item.id for item in seen], "an invisible message is not there for others")
        teller.say("Until its time-out passes, nobody else sees it.")

    received_ms = world.time.clock.now().monotonic_ms

    async def due() -> bool:
        now = world.time.clock.now()
        return now.wall_ms > first.visible_at_ms and now.monotonic_ms > received_ms + SHORT_VISIBILITY_MS

    teller.say(_waited(world, await world.wait_until(due, "time passes")))
    (again,) = await world.receive(ORDERS, 1)
    teller.did(
        "receive()", f"{again.id} {again.body.decode()!r}, delivery {again.deliveries}, receipt {short(again.receipt)}"
    )
    expect(again.id == first.id and again.deliveries == 2, "the same message came back, delivered for the second time")
    expect(again.receipt != first.receipt, "every delivery has a receipt of its own")
    (stale,) = await world.engine.ack(world.account, ORDERS, [first.receipt])
    expect(isinstance(stale, StaleReceipt), "the receipt of an earlier delivery is refused")
    teller.did(f"ack({short(first.receipt)})", f"refused: {stale}")
    (good,) = await world.engine.ack(world.account, ORDERS, [again.receipt])
    expect(good is None, "the receipt of the newest delivery works")
    teller.did(f"ack({short(again.receipt)})", "settled")
    teller.say(
        "An ack is one conditional write on the number of the delivery, so of two consumers at most one wins, whatever "
        "their clocks say. What comes back is served before what is new."
    )


async def kill_a_server(world: TourWorld) -> None:
    teller = world.teller
    teller.heading("A server dies")
    server = await world.start_server(ORDERS, DEAD_SERVER_VISIBILITY_MS)
    answer = await server.answer()
    lease = await world.lease(ORDERS)
    expect(lease.get("holder") == answer["server"], "the other server holds the lease")
    pid = server.process.pid
    teller.did(f"process {pid}: step()", f"elected for lane 0, fence {lease.get('fence')!r}")
    teller.did(f"process {pid}: receive()", f"{answer['id']}, receipt {short(answer['receipt'])}")
    rest = await world.receive(ORDERS, 10)
    expect([item.body for item in rest] == [b"soap", b"wine"], "what the other server holds is not there for us")
    outcomes = await world.engine.ack(world.account, ORDERS, [item.receipt for item in rest])
    expect(outcomes == [None, None], "we ack the rest")
    teller.did("meanwhile, here: receive(), ack()", "soap and wine, all that is left")
    code = await server.kill()
    expect(code == -signal.SIGKILL, "the process was killed, not asked to stop")
    teller.did(f"kill -9 {pid}", "gone, with a message in flight and the lease in its name")
    # From here on this server watches the lease.
    await world.engine.step(world.account, ORDERS)
    back, waited_ms = await world.wait_for_message(ORDERS, "a dead server's message comes back")
    teller.say(_waited(world, waited_ms))
    teller.did("receive()", f"{back.id} {back.body.decode()!r}, delivery {back.deliveries}")
    expect(str(back.id) == answer["id"] and back.deliveries == answer["deliveries"] + 1, "it is the very same message")
    (acked,) = await world.engine.ack(world.account, ORDERS, [back.receipt])
    expect(acked is None, "the other server settles it")
    teller.did(f"ack({short(back.receipt)})", "settled")
    teller.say(
        "The lease still names the dead: it lapses once somebody has watched it stand still for as long as it was "
        "promised. Nothing waits for that but housekeeping. We watch it, and meanwhile make another queue."
    )
    world.notes["fence"] = lease.get("fence")


async def late_write(world: TourWorld) -> None:
    teller, engine, account = world.teller, world.engine, world.account
    teller.heading("A write arrives late, and is admitted")
    settings = QueueSettings(
        bucket_size=BUCKET_SIZE, visibility_timeout_ms=PATIENT_VISIBILITY_MS, repair_timeout_ms=REPAIR_TIMEOUT_MS
    )
    await engine.create_queue(account, LETTERS, settings)
    ids_of(await engine.put(account, LETTERS, [NewMessage(b"Anna"), NewMessage(b"Ben"), NewMessage(b"Cleo")]))
    stalled = await world.other.reserve(account, LETTERS, 1)
    later = ids_of(await engine.put(account, LETTERS, [NewMessage(b"Emil")]))
    expect((stalled.first, later[0].number) == (3, 4), "3 was reserved before 4 was put")
    teller.did('put("Anna", "Ben", "Cleo")', "ids 0-0, 0-1, 0-2")
    teller.did("second server: reserve one id", "0-3, and there it stalls before it writes")
    teller.did('put("Emil")', f"id {later[0]}")
    got = await world.receive(LETTERS, 10)
    expect([item.id.number for item in got] == [0, 1, 2, 4], "a missing id holds nothing up")
    held = got[2]
    outcomes = await engine.ack(account, LETTERS, [item.receipt for item in got if item is not held])
    expect(outcomes == [None] * 3, "three are acked")
    teller.did("receive(), ack()", "0-0, 0-1 and 0-4 are done; 0-2 is still in flight; 0-3 is missing")
    await world.draw(LETTERS)

    async def final() -> bool:
        expect(await world.receive(LETTERS, 1) == [], "there is nothing to receive")
        await engine.step(account, LETTERS)
        return (await engine.marks(account, LETTERS))[0].settled >= 1

    waited_ms = await world.wait_until(final, "repair makes the bucket final")
    teller.say(
        f"{_waited(world, waited_ms)} The reader has closed bucket 0, since the ids have moved on; repair has "
        "waited its time, has made the bucket final and has found nothing under 0-3."
    )
    await world.draw(LETTERS)
    (outcome,) = await world.other.put_reserved(stalled, [NewMessage(b"Dora")])
    expect(outcome == MessageId(0, stalled.first), "the late message keeps the id that was reserved for it")
    teller.did('second server wakes up and writes "Dora"', f"confirmed as {outcome}")
    late, _ = await world.wait_for_message(LETTERS, "the late message is delivered")
    expect(late.body == b"Dora" and late.id == outcome, "the late message is delivered under its own id")
    teller.did("receive()", f"{late.id} {late.body.decode()!r}")
    outcomes = await engine.ack(account, LETTERS, [late.receipt, held.receipt])
    expect(outcomes == [None, None], "both settle")
    teller.say(
        "After writing, and before confirming, a put reads how far `final` has come. Here it had passed the bucket, "
        "so the put admitted its own message in place. Had every other message there been done and the bucket "
        "finished, it would have gone again under a new id. No clock decides this."
    )
    await world.draw(LETTERS)


async def delete_and_make_again(world: TourWorld) -> None:
    teller, engine, account = world.teller, world.engine, world.account
    teller.heading("A queue is deleted and made again under its name")
    ids_of(await engine.put(account, LETTERS, [NewMessage(b"from the old queue"), NewMessage(b"another")]))
    (old,) = await world.receive(LETTERS, 1)
    expect((await world.other.stats(account, LETTERS)).in_flight == 1, "the second server knows the old queue")
    await engine.delete_queue(account, LETTERS)
    _, made = await engine.create_queue(account, LETTERS, QueueSettings(bucket_size=BUCKET_SIZE))
    expect(made, "the name is free at once")
    teller.did(f'delete_queue("{LETTERS}")', "gone, with two messages in it")
    teller.did(f'create_queue("{LETTERS}")', "made, at once")
    (fresh,) = ids_of(await world.other.put(account, LETTERS, [NewMessage(b"from the new queue")]))
    expect(fresh.number == 0, "a server with an old memory of the queue puts into the new one")
    got = await world.receive(LETTERS, 10)
    expect([item.body for item in got] == [b"from the new queue"], "nothing of the old queue is seen")
    teller.did("receive()", f"{got[0].id} {got[0].body.decode()!r}, and nothing else")
    (refused,) = await engine.ack(account, LETTERS, [old.receipt])
    expect(isinstance(refused, InvalidReceipt), "a receipt of the old queue is refused")
    teller.did(f"ack({short(old.receipt)})", f"refused: {refused}")
    portions = 0
    while await engine.bury_step():
        portions += 1
    expect(portions > 0, "what the old queue held is dropped")
    teller.say(
        "Every row carries the queue's incarnation, so the two have nothing in common. The second server had just "
        "used the old one; its put cannot land there any more, since deleting closed the sequence that ids come from. "
        f"The old rows were dropped in {portions} portions."
    )


async def take_over(world: TourWorld) -> None:
    teller, engine, account = world.teller, world.engine, world.account
    teller.heading("The dead server's work is taken over")

    async def taken() -> bool:
        await engine.step(account, ORDERS)
        return (await world.lease(ORDERS)).get("holder") == engine.memory.server

    waited_ms = await world.wait_until(taken, "a lease that is not renewed is taken over")
    lease = await world.lease(ORDERS)
    expect(lease.get("fence") == world.notes["fence"] + 1, "the fence rises by one with every takeover")
    teller.say(_waited(world, waited_ms))
    teller.did("step()", f"elected for lane 0, fence {lease.get('fence')!r}, one above the dead server's")
    (acked,) = await engine.ack(account, ORDERS, [world.notes["rice"]])
    expect(acked is None, "the consumer of step 3 acks at last")
    teller.did(f"the consumer of step 3: ack({short(world.notes['rice'])})", "settled")

    async def finished() -> bool:
        expect(await world.receive(ORDERS, 1) == [], "nothing is left")
        await engine.step(account, ORDERS)
        return (await engine.marks(account, ORDERS))[0].repair >= 1

    teller.say(_waited(world, await world.wait_until(finished, "a bucket whose messages are all settled is finished")))
    await world.draw(ORDERS)
    teller.say(
        "Six orders went in and six are settled. Bucket 0 is finished and will never change again; a day from now, the "
        "queue's history, it is dropped whole. The dead server cost some waiting and nothing else."
    )


def _waited(world: TourWorld, waited_ms: int) -> str:
    if waited_ms < NOTICED_MS:
        return ""
    how = "The clock was put forward by some" if world.time.skips else "That took"
    return f"{how} {waited_ms / 1000:.1f} s."


STEPS = (create, put, receive_and_ack, redeliver, kill_a_server, late_write, delete_and_make_again, take_over)
