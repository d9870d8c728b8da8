"""Mutants of the delay line: what waits there, and how it gets into its queue."""

from tests.simulation.mutants.patching import Mutant, Patch

DELAYS = (
    Mutant(
        "delay line acked before it is handed over",
        "Whoever dies, or loses the store, between the two has nobody who puts the message.",
        "R7, A1",
        (
            Patch(
                "kinds.delay_line.DelayLine._hand_over",
                "done = await self._put_due(queue, line, waiting.deliveries)",
                "done = waiting.deliveries\n"
                "        await self._timeline.ack(line, line.account, [each.receipt for each in done], False)\n"
                "        await self._timeline.checkpoint(line)\n"
                "        await self._put_due(queue, line, waiting.deliveries)",
            ),
        ),
        ("total_queue", "drains"),
    ),
    Mutant(
        "delay line handed over without a key",
        "What was put and not acked in the line is put once more.",
        "R7, R10",
        (Patch("delays.due_message", "key=f'{HIDDEN}due.{_signed(first.id, secret)}'", "key=None"),),
        ("ack_finality", "one_winner", "dedup"),
    ),
    Mutant(
        "delay line found once",
        "A server that has found no line of a queue never looks for one again.",
        "R4, A10",
        (
            Patch(
                "kinds.delay_line.DelayLine.step",
                "self._patience_ms() if line is None",
                "limits.DURATION_MAXIMUM_MS if line is None",
            ),
            Patch("kinds.delay_line.DelayLine._look_in", "min(at_ms, self._looks.get(queue.incarnation, at_ms))",
                  "self._looks.get(queue.incarnation, at_ms)"),
        ),
        ("drains", "total_queue"),
    ),
)
