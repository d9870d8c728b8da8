"""What was in a queue goes to a queue once more, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from angelhair.errors import InvalidRequest
from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.pipelines.archive import archive
from angelhair.spark.pipelines.replay import Asked, replay
from angelhair.spark.place import Place
from tests.queues import Identities
from tests.spark.live import QUICK, Live
from tests.spark.test_sink import received


def place_of(live: Live) -> Place:
    return Place.of({name.lower(): value for name, value in live.options.items()})


def test_a_replay_goes_to_its_queue_once(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    """Half of it from the lake, half of it still in the queue."""
    queue, again = live.create(**QUICK), live.create()
    place, lake = place_of(live), str(tmp_path)
    live.put(queue, [NewMessage(b"%d" % number, json.dumps({"n": number})) for number in range(150)])
    live.drain(queue, 150)
    live.work_until(queue, "repair", 15)
    archive(spark, place, ACCOUNT, queue, lake, Identities())
    live.put(queue, [NewMessage(b"%d" % number) for number in range(150, 200)])
    live.drain(queue, 50)
    live.work_until(queue, "settled", 20)

    asked = Asked(queue, again, where="cast(cast(body as string) as int) % 2 = 0")
    done = replay(spark, place, ACCOUNT, lake, asked)
    assert (done.messages, done.repeated) == (100, 0)
    taken = live.receive(again, 100)
    assert {delivery.body: delivery.attributes for delivery in taken} == {
        b"%d" % number: json.dumps({"n": number}) if number < 150 else None for number in range(0, 200, 2)
    }
    live.ack(again, taken)

    # More has come since; the same replay is still the same.
    live.put(queue, [NewMessage(b"%d" % number) for number in range(200, 250)])
    live.drain(queue, 50)
    live.work_until(queue, "settled", 25)
    done = replay(spark, place, ACCOUNT, lake, asked)
    assert (done.messages, done.repeated) == (0, 100)
    assert received(live, again) == {}
    done = replay(spark, place, ACCOUNT, lake, asked, "once more", rate=10_000)
    assert done.messages == 125
    assert received(live, again) == {b"%d" % number: 1 for number in range(0, 250, 2)}
    with pytest.raises(InvalidRequest, match="another replay's"):
        replay(spark, place, ACCOUNT, lake, asked._replace(where=""), "once more")


def test_a_replay_is_bounded_by_ids_and_times(spark: SparkSession, live: Live, tmp_path: Path) -> None:
    queue, again = live.create(**QUICK), live.create()
    place, lake = place_of(live), str(tmp_path)
    live.put(queue, [NewMessage(b"%d" % number) for number in range(40)])
    live.drain(queue, 40)
    live.work_until(queue, "settled", 4)
    done = replay(spark, place, ACCOUNT, lake, Asked(queue, again, '{"0": 5}', '{"0": 25}'))
    assert done.messages == 20
    assert received(live, again) == {b"%d" % number: 1 for number in range(5, 25)}
    assert replay(spark, place, ACCOUNT, lake, Asked(queue, again, end="2001-01-01T00:00:00Z")).messages == 0
    assert replay(spark, place, ACCOUNT, lake, Asked(queue, again, start="2001-01-01T00:00:00Z")).messages == 40
