"""Mutants of databags: the seal, admission, the end of epochs, locks, deletes, serials, the order of turns."""

from angelhair.model import DATABAG
from tests.simulation.mutants.attack import key_meets_the_end_of_its_epoch
from tests.simulation.mutants.bag_attacks import late_put_to_what_was_seen_empty, rush_is_cut_finer
from tests.simulation.mutants.patching import Mutant, Patch

LOST = ("total_queue", "drains", "epochs")

BAGS = (
    Mutant(
        "databag put that does not look at the seal",
        "A put is confirmed wherever it was written, though its epoch may be finished by then.",
        "R1",
        (Patch("databag.put._confirm", "epochs.open == epoch", "True"),),
        LOST,
        kind=DATABAG,
    ),
    Mutant(
        "databag epoch finished over what was admitted",
        "Who finishes an epoch does not mind that a put has come in since it looked.",
        "R1",
        (
            Patch(
                "databag.epochs.change", "{'version': before.version, 'deleted': None}", "{'deleted': None}",
            ),
        ),
        (*LOST, "epochs"),
        kind=DATABAG,
    ),
    Mutant(
        "databag epoch finished with messages in it",
        "An epoch is finished as soon as its first message is deleted.",
        "R15",
        (
            Patch("databag.finish._is_over", "not _is_row_over(bag, row.values, now)", "False"),
        ),
        LOST,
        kind=DATABAG,
    ),
    Mutant(
        "databag epoch dropped before it is finished",
        "What is sealed is dropped at once.",
        "R14",
        (
            Patch(
                "databag.retire.drop_some", "epochs.over",
                "epochs.over or [epochs_of.Over(each.number, each.number, 0, 0) for each in epochs.sealed]",
            ),
            Patch("databag.retire.drop_some", "now.wall_ms - over.at_ms < bag.kept_ms", "False"),
        ),
        LOST,
        kind=DATABAG,
    ),
    Mutant(
        "databag lock that nobody heeds",
        "A partition is served again whether it is locked or not.",
        "D3",
        (Patch("databag.choose._unlocked", "block.version is None or block.is_locked(run, now, by_wall)",
               "block.version is None"),),
        ("slice_locks",),
        kind=DATABAG,
    ),
    Mutant(
        "databag lock without its version",
        "Who believes in other borders, or was asleep, locks what another has served since.",
        "R15",
        (Patch("databag.lock.take", "{'version': version or None, 'deleted': None}", "{'deleted': None}"),),
        ("slice_locks",),
        kind=DATABAG,
    ),
    Mutant(
        "databag delete forgotten",
        "A delete is confirmed, and nothing is written.",
        "D5",
        (Patch("databag.ack.delete", "if writes else {}", "if False else dict.fromkeys(rows)"),),
        ("deleted_for_good", "drains"),
        kind=DATABAG,
    ),
    Mutant(
        "databag ids without serials",
        "What makes an id the only one is the same in all of them.",
        "A1",
        (Patch("databag.put.put", "serials[index]", "0"),),
        ("unique_ids", "total_queue", "drains"),
        kind=DATABAG,
    ),
    Mutant(
        "databag without turns",
        "The first partition that has something is served, whoever waits.",
        "D3",
        (
            Patch("databag.lane.BagView.served", "run in self.order", "False"),
            Patch("databag.lane.BagView.in_order", "not self.is_sorted", "False"),
        ),
        ("fairness",),
        kind=DATABAG,
    ),
    Mutant(
        "databag key that nobody completes",
        "Who finds a key pending answers with its id, though the message may never have been written.",
        "R10",
        (Patch("databag.keyed._take_in", "status == COMMITTED", "True"),),
        LOST,
        kind=DATABAG,
    ),
    Mutant(
        "databag key without a row",
        "Each put with a key takes an id of its own, whatever the key's row says.",
        "R10",
        (Patch("databag.keyed._name", "one.expect or {}", "{}"),),
        ("dedup",),
        kind=DATABAG,
    ),
    Mutant(
        "databag key that moves on from what was put",
        "A key whose epoch is finished moves on, though its message was put before that.",
        "R10",
        (Patch("databag.keyed._move_on", "one.answer is None and one.number not in there", "one.answer is None"),
         Patch("databag.keyed._move_on", "one.number in there", "False"),),
        ("dedup",),
        kind=DATABAG,
    ),
    Mutant(
        "databag duplicates that are not counted",
        "What was served though it had been deleted is not looked for.",
        "D7",
        (
            Patch(
                "databag.duplicates.served_deleted",
                "deleted.get(number, before.served_at_ms) < before.served_at_ms", "False",
            ),
        ),
        ("duplicates",),
        kind=DATABAG,
    ),
    Mutant(
        "databag duplicates forgotten with their epoch",
        "An epoch is finished without a look at what the locks show of it, and nobody looks afterwards.",
        "D7",
        (
            Patch("databag.finish.finish_some", "not await count_of_epoch(bag, block, epochs, sealed.number)", "False"),
            Patch("databag.finish._count_ended", "sorted(view.uncounted)", "()"),
        ),
        ("duplicates",),
        kind=DATABAG,
    ),
    Mutant(
        "databag duplicates within a time-out that are not counted",
        "What is served twice while the lock says that it is not over is nobody's business.",
        "D7",
        (Patch("databag.lock.take", "_served_twice(each, served_at_ms)", "set()"),),
        ("duplicates",),
        kind=DATABAG,
    ),
)

RARE_BAGS = (
    Mutant(
        "databag key whose place is not held",
        "The body of a message with a key is written at once, and seen before it is sure to stay.",
        "R10",
        (
            Patch("databag.keyed._complete", "{'held_at': one.begun_at}", "values_of(one.message, one.begun_at)"),
        ),
        attack=key_meets_the_end_of_its_epoch,
    ),
    Mutant(
        "databag key whose held place is not looked at",
        "The body of a message with a key is written though its epoch may be finished, and is taken for one of before.",
        "R10",
        (Patch("databag.keyed._complete", "going = await _sure(bag, going, unfit)", "going = list(going)"),),
        attack=key_meets_the_end_of_its_epoch,
    ),
    Mutant(
        "databag slices that stay empty for ever",
        "What was admitted after a look found nothing in a sealed epoch is not looked for there.",
        "R1",
        (Patch("databag.lane.BlockView.is_empty", "known[0] == admitted", "True"),),
        attack=late_put_to_what_was_seen_empty,
    ),
    Mutant(
        "databag whose number of partitions stays",
        "Nobody moves the number, whatever waits.",
        "D4",
        (Patch("databag.sync.take_over", "wanted != now", "False"),),
        attack=rush_is_cut_finer,
    ),
)
