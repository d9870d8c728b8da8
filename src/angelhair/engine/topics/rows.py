"""Topics and subscriptions as rows: what is written is what is read."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from angelhair.engine.store import Row, Values
from angelhair.engine.topics.values import Subscription, Topic, TopicSettings

COLUMNS = ("protocol", "endpoint", "status", "token", "version")
SETTINGS = ("raw", "filter_policy", "filter_scope", "dead_letter_queue", "notes")
"""What lies as JSON in one column, so that a newer version may know more."""


def topic_values(topic: Topic) -> Values:
    return {
        "incarnation": topic.incarnation,
        "settings": json.dumps(asdict(topic.settings), sort_keys=True),
        "notes": json.dumps(dict(topic.notes), sort_keys=True),
        "created_at": topic.created_at_ms,
        "changed_at": topic.changed_at_ms,
        "version": topic.version,
    }


def topic_of(account: str, row: Row) -> Topic:
    values: dict[str, Any] = dict(row.values)
    known = {setting.name for setting in fields(TopicSettings)}
    settings = {name: value for name, value in json.loads(values["settings"]).items() if name in known}
    return Topic(
        account,
        str(row.key),
        values["incarnation"],
        TopicSettings(**settings),
        json.loads(values["notes"]),
        values["version"],
        values["created_at"],
        values["changed_at"],
    )


def subscription_values(subscription: Subscription) -> Values:
    settings = {name: getattr(subscription, name) for name in SETTINGS}
    return {
        **{name: getattr(subscription, name) for name in COLUMNS},
        "settings": json.dumps({**settings, "notes": dict(subscription.notes)}, sort_keys=True),
        "created_at": subscription.created_at_ms,
    }


def subscription_of(incarnation: str, row: Row) -> Subscription:
    values: dict[str, Any] = dict(row.values)
    settings = {name: value for name, value in json.loads(values["settings"]).items() if name in SETTINGS}
    named = {name: values[name] for name in COLUMNS}
    return Subscription(
        **named, **settings, id=str(row.key), topic=incarnation, created_at_ms=values["created_at"]
    )
