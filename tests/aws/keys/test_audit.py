"""The audit log of a real server."""

from __future__ import annotations

import json
from typing import Any

from tests.aws.keys.keyed import Key, Keyed, refusal, until


def test_who_administers_and_who_is_refused_is_written_down(
    server: Keyed, ours: Any, theirs: Any, shop: Key, partner: Key, name: str
) -> None:
    def lines(**wanted: object) -> list[dict[str, Any]]:
        return [line for line in server.audit() if all(line.get(key) == value for key, value in wanted.items())]

    url = ours.create_queue(QueueName=name)["QueueUrl"]
    ours.purge_queue(QueueUrl=url)
    refusal(ours.purge_queue, QueueUrl=url)
    refusal(theirs.send_message, QueueUrl=url, MessageBody="x")
    ours.send_message(QueueUrl=url, MessageBody="the body is nobody's business")
    with server.rest(shop) as line:
        line.patch(f"/queues/{name}", json={"max_deliveries": 3})
    ours.delete_queue(QueueUrl=url)
    done = until(lambda: lines(queue=name, action="DeleteQueue") and lines(queue=name))
    seen = [(line["event"], line["action"], line.get("outcome") or line.get("code"), line["key"]) for line in done]
    assert seen == [
        ("administered", "CreateQueue", "done", shop.id),
        ("administered", "PurgeQueue", "done", shop.id),
        ("administered", "PurgeQueue", "AWS.SimpleQueueService.PurgeQueueInProgress", shop.id),
        ("refused", "SendMessage", "AccessDenied", partner.id),
        ("administered", "SetQueueAttributes", "done", shop.id),
        ("administered", "DeleteQueue", "done", shop.id),
    ]
    assert {line["peer"] for line in done} == {"127.0.0.1"}
    assert {line["account"] for line in done} == {shop.account, partner.account}
    made = server.key(shop.account)
    server.run("key", "delete", made.id)
    assert until(lambda: lines(event="key", key=made.id) or lines(event="key", change="made", account=shop.account))
    assert not [line for line in server.audit() if shop.secret in json.dumps(line)]
