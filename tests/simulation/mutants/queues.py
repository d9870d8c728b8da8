"""Mutants of what happens between queues and to whole queues: moving, deleting, lanes; and of settling unknowns."""

from tests.simulation.mutants.attack import suspended_putter_meets_sealed_lane
from tests.simulation.mutants.patching import Mutant, Patch

WRITE_FIRST = """first = await put.reserve(target, len(candidates), attempt)
    numbers = [candidate.number for candidate in candidates]
    bodies, states = await source.store.read(
        [Span(place, min(numbers), max(numbers)) for place in (source.bodies(bucket), source.states(bucket))]
    )
    born, state = ({row.key: row.values for row in part.rows} for part in (bodies, states))
    for index, candidate in enumerate(candidates):
        if candidate.number in born:
            to = Target(label, target.account, target.queue, target.incarnation, target.number, first + index)
            message = _message(source, candidate.number, state.get(candidate.number, {}), born[candidate.number], to)
            await put.write(target, [put.Placed(first + index, message, begin_ms)], target.clock.now())"""

SETTLE_FIRST = """            gone = {'settled': target.label, 'settled_at': now.wall_ms}
            row = RowChange(number, {'settled': MOVING, 'moving_to': to}, gone)
            await change_one(source.store, Change(source.states(bucket), [row]))
            written = await put.write("""

QUEUES = (
    Mutant(
        "transfer marks after writing",
        "A message is written to its new queue before its row says that it is moving there.",
        "R7",
        (Patch("transfer.begin", "first = await put.reserve(target, len(candidates), attempt)", WRITE_FIRST),),
        ("dead_letters",),
    ),
    Mutant(
        "transfer resumed under a new id",
        "Whoever goes on with a move that stands still reserves an id of his own for it.",
        "R7",
        (
            Patch(
                "transfer._resume_one",
                "placed = put.Placed(",
                "target = target._replace(number=await put.reserve(lane, 1, attempt + str(number)))\n"
                "        placed = put.Placed(",
            ),
        ),
        ("dead_letters",),
    ),
    Mutant(
        "moved before it was written",
        "A message's row says that it is gone before it has arrived in its new queue.",
        "R7",
        (Patch("transfer._resume_one", "            written = await put.write(", SETTLE_FIRST),),
        ("total_queue", "drains"),
    ),
    Mutant(
        "deletion leaves the sequences",
        "A queue is deleted without marking its sequences, so that servers with an old memory go on putting into it.",
        "R6",
        (Patch("catalog.finish_deleting", "for lane in queue.lanes", "for lane in ()"),),
        ("total_queue", "drains", "incarnations"),
    ),
    Mutant(
        "incarnation used again",
        "A queue made again under its name has the rows of the old one.",
        "R6",
        (
            Patch(
                "catalog.create",
                "Queue(account, name, identities.fresh(),",
                "Queue(account, name, (name.encode().hex() * 16)[:32],",
            ),
        ),
        ("incarnations", "total_queue", "drains", "ack_finality", "marks", "unique_receipts"),
    ),
    Mutant(
        "sealed lane forgotten too soon",
        "A sealed lane is taken out of the catalog before it was read to its end.",
        "R11",
        (
            Patch("lanes._end_lane", "marks.dropped * size >= marks.next_id", "marks.reader * size >= marks.next_id"),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "conditional write of unknown outcome denied",
        "A conditional write that may have happened, or may yet, is answered as one that did not.",
        "A1",
        (
            Patch("settling.change_settled", "range(limits.SETTLE_ATTEMPTS)", "range(0)"),
            Patch(
                "settling.change_settled",
                "return outcomes",
                "return [Unavailable() if isinstance(outcome, OutcomeUnknown) else outcome for outcome in outcomes]",
            ),
            Patch("settling.change_settled", "unsure.update(unknown)", "pass"),
        ),
        ("true_acks", "drains"),
    ),
    Mutant(
        "conditional write of unknown outcome believed",
        "A conditional write that may not have happened is taken for one that did.",
        "A3",
        (
            Patch("settling.change_settled", "range(limits.SETTLE_ATTEMPTS)", "range(0)"),
            Patch(
                "settling.change_settled",
                "return outcomes",
                "return [Applied() if isinstance(outcome, OutcomeUnknown) else outcome for outcome in outcomes]",
            ),
            Patch(
                "settling.change_settled",
                "outcomes = await",
                "from angelhair.engine.store import Applied\n    outcomes = await",
            ),
        ),
        ("unique_receipts", "ack_finality", "total_queue", "drains", "one_winner", "marks"),
    ),
    Mutant(
        "lane number used again",
        "A new lane gets the number of a forgotten one, whose sequence stays sealed: what waits in the delay line can "
        "be handed over to no lane.",
        "R11",
        (
            Patch(
                "catalog.change",
                "new = list(range(queue.lanes_made, queue.lanes_made + len(missing)))",
                "new = [lane for lane in range(64) if lane not in queue.lanes][:len(missing)]",
            ),
        ),
        caught_by=("total_queue", "drains"),
    ),
)

SEALED = (
    Mutant(
        "put into a sealed lane",
        "A reservation does not look at whether its lane takes puts any more.",
        "R11",
        (
            Patch("bucketed.put._reservation", ", 'sealed': None}", "}"),
            Patch("bucketed.put._next_of", "if values.get('sealed'):", "if False:"),
        ),
        attack=suspended_putter_meets_sealed_lane,
    ),
)
