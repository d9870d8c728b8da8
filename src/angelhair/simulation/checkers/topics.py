"""R16: what was published reaches those who were subscribed, in order where there is one, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from angelhair.simulation.history import CONFIRMED, REFUSED, UNKNOWN
from angelhair.simulation.topic_history import CREATE, DELETE, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, Deed
from angelhair.simulation.topic_outcome import TopicOutcome


def topic_reach(outcome: TopicOutcome) -> list[str]:
    """A publication that was confirmed reaches every queue that was subscribed from its beginning to its end."""
    arrived = outcome.history.arrived
    return [
        f"lost: {publish.what} was confirmed and never reached {queue}"
        for publish, queue in due(outcome)
        if (queue, publish.what) not in arrived
    ] + [f"dropped: {text}" for text in outcome.history.dropped]


def topic_strays(outcome: TopicOutcome) -> list[str]:
    """Nothing reaches a queue that was not subscribed from the publication's beginning to its end, nothing that was
    refused reaches anybody, and a topic that is gone confirms nothing."""
    history = outcome.history
    violations = []
    published: dict[str, list[Deed]] = {}
    for deed in history.deeds:
        if deed.verb == PUBLISH:
            published.setdefault(deed.what, []).append(deed)
            if deed.outcome == CONFIRMED and _deleted(history.deeds, deed):
                violations.append(f"{deed.what} was confirmed by a topic that was gone")
    for queue, body in history.arrived:
        tries = published.get(body, [])
        if not tries:
            violations.append(f"unexpected: {body} in {queue} was never published")
        elif all(deed.outcome == REFUSED for deed in tries):
            violations.append(f"undone: {body} was refused and reached {queue} all the same")
        elif all(deed.outcome == REFUSED or _outside(history.deeds, deed, queue) for deed in tries):
            violations.append(f"stray: {body} reached {queue}, which was not subscribed")
    return violations


def topic_copies(outcome: TopicOutcome) -> list[str]:
    """A publication is put into a queue once without a key, by whom it was received first; and ever after under a key,
    which is one message. Publications of a fifo topic always have a key."""
    history = outcome.history
    if outcome.outlived_keys:
        return []
    remade = any(deed.verb == DELETE and deed.outcome != REFUSED for deed in history.deeds)
    violations = [f"{body} was put into {queue} {count} times without a key" for (queue, body), count
                  in history.plain.items() if count > (0 if outcome.fifo else 1)]
    found = history.arrived if outcome.fifo else history.keyed
    # A topic that was made again knows no key of the old one.
    violations += [
        f"{body} is in {queue} as {sorted(ids)}" for (queue, body), ids in found.items()
        if len(ids) > 1 and not (remade and history.again[body])
    ]
    return violations


def topic_order(outcome: TopicOutcome) -> list[str]:
    """A fifo queue has the publications of a group in the order in which they were confirmed. A topic that is made
    again has other groups."""
    ends = [deed for deed in outcome.history.deeds if deed.verb == DELETE and deed.outcome != REFUSED]
    groups: dict[str, list[Deed]] = {}
    for deed in outcome.history.deeds:
        if deed.verb == PUBLISH and deed.group and deed.outcome == CONFIRMED and not outcome.history.again[deed.what]:
            groups.setdefault(deed.group, []).append(deed)
    violations = []
    for queue in outcome.fifo_queues:
        for deeds in groups.values():
            places = [
                (deed, min(int(each.partition("-")[2]) for each in ids))
                for deed in deeds
                if (ids := outcome.history.arrived.get((queue, deed.what)))
            ]
            violations += [
                f"{later.what} is before {earlier.what} in {queue}, though it was published after it"
                for earlier, place in places
                for later, later_place in places
                if _end(earlier) < later.started_us
                and later_place < place
                and not any(deed.started_us <= _end(later) and _landed(deed) >= earlier.started_us for deed in ends)
            ]
    return violations


def due(outcome: TopicOutcome) -> Iterator[tuple[Deed, str]]:
    """Every confirmed publication with every queue that it must reach."""
    deeds = outcome.history.deeds
    for publish in deeds:
        if publish.verb == PUBLISH and publish.outcome == CONFIRMED and not outcome.history.again[publish.what]:
            for queue in outcome.queues:
                if _inside(deeds, publish, queue):
                    yield publish, queue


def _inside(deeds: Sequence[Deed], publish: Deed, queue: str) -> bool:
    """Whether the queue was surely subscribed the whole time."""
    begun = [
        deed for deed in deeds
        if deed.verb == SUBSCRIBE and deed.what == queue and deed.outcome == CONFIRMED
        and deed.ended_us is not None and deed.ended_us <= publish.started_us
    ]
    return any(
        not any(
            _ends(deed, queue) and deed.started_us <= _end(publish) and _landed(deed) >= since.started_us
            for deed in deeds
        )
        for since in begun
    )


def _outside(deeds: Sequence[Deed], publish: Deed, queue: str) -> bool:
    """Whether the queue was surely not subscribed at any time of it: never, or not since it was seen to end."""
    begun = [deed for deed in deeds if deed.verb == SUBSCRIBE and deed.what == queue and deed.outcome != REFUSED]
    if not any(deed.started_us <= _end(publish) for deed in begun):
        return True
    return any(
        all(_landed(other) <= deed.started_us or other.started_us > _end(publish) for other in begun)
        for deed in deeds
        if _ends(deed, queue) and deed.outcome == CONFIRMED and deed.effect and _end(deed) <= publish.started_us
    )


def _deleted(deeds: Sequence[Deed], publish: Deed) -> bool:
    """Whether the topic was surely gone the whole time."""
    made = [deed for deed in deeds if deed.verb == CREATE and deed.outcome != REFUSED]
    return any(
        all(_landed(other) <= deed.started_us or other.started_us > _end(publish) for other in made)
        for deed in deeds
        if deed.verb == DELETE and deed.outcome == CONFIRMED and _end(deed) <= publish.started_us
    )


def _ends(deed: Deed, queue: str) -> bool:
    """Whether it may end the queue's subscription."""
    return deed.outcome != REFUSED and (deed.verb == DELETE or (deed.verb == UNSUBSCRIBE and deed.what == queue))


def _landed(deed: Deed) -> float:
    """When the last of it may have taken effect: of what came back unknown, any time later."""
    return float("inf") if deed.outcome == UNKNOWN else _end(deed)


def _end(deed: Deed) -> float:
    return float("inf") if deed.ended_us is None else deed.ended_us


TOPIC_CHECKERS = (topic_reach, topic_strays, topic_copies, topic_order)
