"""Mutants of timelines: mark, lock and fence, checkpoint, what is set aside, index, the ends of shards, clocks."""

from angelhair.model import TIMELINE
from tests.simulation.mutants.patching import Mutant, Patch

LOST = ("total_queue", "drains", "checkpoints", "shard_order")

DUE = (
    Mutant(
        "timeline put that does not read the mark",
        "A put is confirmed wherever its row lies, though consumers may have passed it there.",
        "R8",
        (
            Patch(
                "timeline.put._judge", "not sequence.get('sealed') and putting.time_ms > mark_ms",
                "not sequence.get('sealed')",
            ),
        ),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline read beyond the mark",
        "A holder reads up to now and raises the mark afterwards: what is put in between it has passed.",
        "R8",
        (Patch("timeline.read.fill", "top_ms = min(now_ms, held.mark_ms)", "top_ms = now_ms"),),
        (*LOST, "shard_rows"),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline shard changed without its fence",
        "Whoever once held a shard goes on to move its checkpoint.",
        "W6",
        (
            Patch(
                "timeline.lock._change", "{'holder': holder, 'fence': fence, 'beat': beat, 'deleted': None}",
                "{'deleted': None}",
            ),
        ),
        ("shard_rows",),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline lock believed in for ever",
        "A holder that was away for longer than its lock gives what it has in hand, without a look.",
        "W9",
        (
            Patch(
                "timeline.window.Held.believed", "not self.lost and now.monotonic_ms < self.believed_until_ms", "True",
            ),
            Patch(
                "timeline.read.fill", "(row.get('holder'), row.get('fence')) != (held.holder, held.fence)", "False",
            ),
            Patch(
                "timeline.consumer._see_losses",
                "row is not None and (row.get('holder'), row.get('fence')) != (held.holder, held.fence)", "False",
            ),
        ),
        ("emergency_stop",),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline lock watched by the wall clock",
        "A clock that jumps lets a lock lapse that was touched just now.",
        "W5, R5",
        (
            Patch(
                "timeline.lock.watch", "view.watched, view.watched_since_ms = (seen, now.monotonic_ms)",
                "view.watched, view.watched_since_ms = (seen, now.wall_ms)",
            ),
            Patch(
                "timeline.lock.watch", "return now.monotonic_ms - view.watched_since_ms",
                "return now.wall_ms - view.watched_since_ms",
            ),
        ),
        ("shard_rows",),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline checkpoint over what is given",
        "The checkpoint passes messages as soon as somebody has them.",
        "W6",
        (Patch("timeline.window.Held.advance", "if not entry.settled:", "if not (entry.settled or entry.given):"),),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline window without bounds",
        "A holder reads and gives on however far the checkpoint is behind.",
        "W5",
        (
            Patch("timeline.read.fill", "min(held.room, portion(line, held.lane))", "portion(line, held.lane)"),
            Patch("timeline.read.fill", "held.mark_ms < now_ms and held.room", "held.mark_ms < now_ms"),
        ),
        ("window",),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline index without its rows",
        "A message is confirmed though no row of the index leads to its part.",
        "R9",
        (Patch("timeline.put._write", "rows = index.needed(line, lane, part, until_ms, now_ms)", "rows = []"),),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline shard drained though something is left",
        "A shard that takes no more puts is forgotten as soon as nothing of it is due.",
        "R8",
        (
            Patch(
                "timeline.retire.is_drained", "parts_between(line, lane, first, None, limits.TIMELINE_INDEX_PARTS)",
                "parts_between(line, lane, first, first, limits.TIMELINE_INDEX_PARTS)",
            ),
        ),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline rows that are not renewed",
        "What nobody has worked off in time expires.",
        "W1",
        (Patch("timeline.renew.renew", "if expire_ms is None or not line.trusts_clock(now):", "if True:"),),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline rows given before they are due",
        "A holder gives what it has read up to the mark, which is ahead of now.",
        "W4",
        (Patch("timeline.read.fill", "top_ms = min(now_ms, held.mark_ms)", "top_ms = held.mark_ms"),),
        ("due_times",),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline message settled before it is set aside",
        "The checkpoint may pass a message that is still to be written again, or never will be.",
        "R8",
        (
            Patch(
                "timeline.aside.set_aside", "for _, entry, _, _ in items:\n        entry.on_its_way = True",
                "for held, entry, _, _ in items:\n        held.settle(entry, None)",
            ),
            Patch("timeline.aside.set_aside", "if entry.settled:", "if False:"),
        ),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline dead letter settled before it is moved",
        "The checkpoint may pass a message that used up its deliveries before the dead letters have it.",
        "R7, W6",
        (
            Patch(
                "kinds.timeline_moves._move",
                "messages = [_message(line, held, entry) for held, entry in items]",
                "messages = [_message(line, held, entry) for held, entry in items]\n"
                "        for held, entry in items:\n            held.settle(entry, None)",
            ),
        ),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline dead letter lost",
        "A message that used up its deliveries is passed, whatever became of its put to the dead letters.",
        "R7, W6",
        (
            Patch("kinds.timeline_moves._move", "if isinstance(outcome, MessageId):", "if True:"),
            Patch("kinds.timeline_moves._move", "outcomes = []", "outcomes = [None] * len(items)"),
        ),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "dead letter crossed off before the timeline has it",
        "A dead letter that goes back to a timeline is gone before it is put there, and whatever becomes of that.",
        "R7",
        (
            Patch(
                "transfer._put_apart", "outcome = await target.send(message)",
                "await _settle(source, bucket, number, to, Target.from_text(to), now)\n"
                "        outcome = await target.send(message)",
            ),
        ),
        ("sent_back",),
        kind=TIMELINE,
    ),
    Mutant(
        "timeline dead letter known by what it says",
        "What went back and died again is taken for the dead letter that it was before, and passed.",
        "R7, W6",
        (
            Patch(
                "kinds.timeline_moves._message", "key=f'{line.incarnation}/{id_of(held, entry)}'",
                "key=f'{line.incarnation}/{message.body.hex()}'",
            ),
        ),
        LOST,
        kind=TIMELINE,
    ),
    Mutant(
        "timeline by a wrong clock",
        "A server whose clock is wrong by a year takes for due what is not.",
        "R5, R8",
        (
            Patch(
                "timeline.lane.Line.time_ms",
                "now.wall_ms if self.trusts_clock(now) else await self.store.time_ms()",
                "now.wall_ms",
            ),
        ),
        ("due_times",),
        kind=TIMELINE,
    ),
)
