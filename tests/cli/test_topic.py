"""`angelhair topic`, as a process, against a real server."""

from __future__ import annotations

from angelhair import Client
from tests.cli.command import Angelhair


def test_a_topic_from_its_making_to_its_end(angelhair: Angelhair, client: Client, queue: str, name: str) -> None:
    topic = f"t-{name}"
    assert angelhair("topic", "create", topic, "--json").json["kind"] == "standard"
    assert angelhair("topic", "subscribe", topic, queue, "--json").json == {"topic": topic, "queue": queue}
    published = angelhair("topic", "publish", topic, "hello", "--content-type", "text/plain")
    assert len(published.out.strip()) == 32
    (message,) = client.receive(queue, 1, wait=30)
    assert (message.text, message.content_type) == ("hello", "text/plain")
    assert ["queue", queue] in angelhair("topic", "show", topic).rows
    assert angelhair("topic", "list", topic).out.split() == [topic]
    angelhair("topic", "unsubscribe", topic, queue)
    assert "is not subscribed" in angelhair("topic", "unsubscribe", topic, queue, expect=1).err
    angelhair("topic", "delete", topic, "--yes")
    assert list(client.topics(topic)) == []


def test_fifo_and_wrong_usage(angelhair: Angelhair, name: str) -> None:
    topic = f"t-{name}.fifo"
    assert angelhair("topic", "create", topic, "--content-dedup", "--json").json["kind"] == "fifo"
    assert "group" in angelhair("topic", "publish", topic, "x", expect=1).err
    said = angelhair("topic", "publish", topic, "--group", "g", "--json", given=b"from standard input")
    assert said.json.keys() == {"id", "topic"}
    said = angelhair("topic", "publish", topic, "--group", "eur", "--key", "17", "1.08", "--json")
    assert said.json["topic"] == topic
    angelhair("topic", "publish", topic, "x", "--file", "y", expect=2)
