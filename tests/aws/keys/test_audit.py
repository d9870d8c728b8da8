"""The audit log of a real server."""

from __future__ import annotations

import json
from typing import Any

from tests.aws.keys.keyed import DENIED, Key, Keyed, refusal, until

AUDIT = "angelhair.audit"


def test_who_administers_and_who_is_refused_is_written_down(
    server: Keyed, ours: Any, theirs: Any, shop: Key, partner: Key, name: str
) -> None:
    url = ours.create_queue(QueueName=name)["QueueUrl"]
    ours.purge_queue(QueueUrl=url)
    refusal(ours.purge_queue, QueueUrl=url)
    ours.send_message(QueueUrl=url, MessageBody="the body is nobody's business")
    with server.rest(shop) as line:
        line.patch(f"/queues/{name}", json={"max_deliveries": 3})

    def refused() -> list[dict[str, Any]]:
        # Other tests may have been refused so often that there is no room for a line just now.
        assert refusal(theirs.send_message, QueueUrl=url, MessageBody="x") == DENIED
        return server.lines(AUDIT, queue=name, event="refused")

    (denied, *_) = until(refused)
    ours.delete_queue(QueueUrl=url)
    until(lambda: server.lines(AUDIT, queue=name, action="DeleteQueue"))
    done = server.lines(AUDIT, queue=name, event="administered")
    assert [(line["action"], line["outcome"]) for line in done] == [
        ("CreateQueue", "done"),
        ("PurgeQueue", "done"),
        ("PurgeQueue", "AWS.SimpleQueueService.PurgeQueueInProgress"),
        ("SetQueueAttributes", "done"),
        ("DeleteQueue", "done"),
    ]
    assert {(line["account"], line["key"], line["peer"]) for line in done} == {(shop.account, shop.id, "127.0.0.1")}
    assert (denied["action"], denied["code"], denied["level"]) == ("SendMessage", "AccessDenied", "WARNING")
    assert (denied["account"], denied["key"], denied["peer"]) == (partner.account, partner.id, "127.0.0.1")


def test_keys_that_come_and_go_are_written_down(server: Keyed, shop: Key) -> None:
    made = server.key(shop.account)
    for verb, change in (("", "made"), ("disable", "disabled"), ("enable", "enabled"), ("delete", "deleted")):
        if verb:
            server.run("key", verb, made.id)
        (line,) = until(lambda change=change: server.lines(AUDIT, event="key", key=made.id, change=change))
        assert line["account"] == shop.account
    whole = json.dumps(server.lines(AUDIT) + server.lines("angelhair.access"))
    assert shop.secret not in whole and made.secret not in whole


def test_the_access_log_names_account_and_key(server: Keyed, shop: Key, name: str) -> None:
    with server.rest(shop) as line, server.rest() as nobody:
        assert line.get(f"/queues/{name}").status_code == 404
        assert nobody.get(f"/queues/{name}").status_code == 401
    signed, unsigned = until(lambda: len(found := server.lines("angelhair.access", queue=name)) == 2 and found)
    assert (signed["account"], signed["key"], signed["status"]) == (shop.account, shop.id, 404)
    assert "key" not in unsigned and unsigned["status"] == 401
