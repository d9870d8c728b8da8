"""What people try first and is wrong is refused in words that say what was meant, where possible before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from angelhair import AsyncClient, Client
from angelhair.errors import InvalidReceipt, InvalidRequest
from tests.client.server import Served


@pytest.mark.parametrize(
    ("setting", "meant"),
    [("visibility_timeot", "visibility_timeout"), ("visibility_timeout_ms", "visibility_timeout"),
     ("delay_ms", "delay"), ("history_ms", "history")],
)
def test_a_setting_that_was_misspelt(client: Any, setting: str, meant: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{setting}: is not known here; did you mean {meant}\\?"):
        client.create_queue("chores", **{setting: 3})


def test_a_receipt_without_its_queue(server: Served, client: Any) -> None:
    """People try the text of a receipt first."""
    for call in (lambda: client.ack("AQAA"), lambda: client.ack_many(["AQAA"]), lambda: client.extend("AQAA", 5)):
        with pytest.raises(InvalidReceipt, match=r"or in a Receipt\(queue, text\), not in str"):
            call()
    assert server.requests == []


@pytest.mark.parametrize("verb", ["receive", "peek", "dead_letters"])
@pytest.mark.parametrize("count", [0, 1_001, "ten", 1.5])
def test_a_count_is_a_whole_number(server: Served, client: Any, verb: str, count: Any) -> None:
    with pytest.raises(InvalidRequest) as raised:
        getattr(client, verb)("chores", count)
    assert (raised.value.field, server.requests) == ("count", [])


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(("retry", "is_of"), [(60, "int"), (True, "bool"), ("1m", "str")])
def test_how_to_try_again_is_not_a_number(kind: Any, retry: Any, is_of: str) -> None:
    """Else the first call would say that an int has no total_seconds."""
    with pytest.raises(InvalidRequest, match=rf"retry: must be an angelhair.Retry, such as .*, or None, not {is_of}$"):
        kind("http://127.0.0.1:1", retry=retry)


@pytest.mark.parametrize(("there", "missing", "field"), [
    ("ANGELHAIR_KEY_ID", "ANGELHAIR_SECRET", "secret"), ("ANGELHAIR_SECRET", "ANGELHAIR_KEY_ID", "key_id"),
])
def test_half_an_access_key_is_not_left_out(
    monkeypatch: pytest.MonkeyPatch, there: str, missing: str, field: str
) -> None:
    """Else the server would ask for a key, of somebody who has set it."""
    monkeypatch.setenv(there, "AHKIAJ4EXAMPLE234567")
    for value in (None, ""):
        monkeypatch.delenv(missing, raising=False) if value is None else monkeypatch.setenv(missing, value)
        with pytest.raises(InvalidRequest) as refused:
            Client("http://127.0.0.1:1")
        assert str(refused.value) == f"{field}: {there} is set and {missing} is not: an access key is both"


@pytest.mark.parametrize("messages", ["abc", b"abc", bytearray(b"abc")])
def test_one_message_is_not_a_list_of_its_letters(server: Served, client: Any, messages: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^messages: must be a list of messages; put takes a single one$"):
        client.put_many("chores", messages)
    assert server.requests == []
