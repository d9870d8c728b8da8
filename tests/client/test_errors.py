"""Every refusal comes back as the error that the server raised, and "did not happen" is never "may have happened"."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from angelhair import limits
from angelhair.client import Draft, Message, Receipt
from angelhair.client.plans import Answer
from angelhair.client.refusals import refusal
from angelhair.engine import schema
from angelhair.errors import (
    AngelhairError,
    InvalidReceipt,
    InvalidRequest,
    MessageGone,
    NotAllowed,
    OutcomeUnknown,
    QueueExists,
    QueueNotFound,
    RequestError,
    StaleReceipt,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)
from angelhair.server.rest.errors import CODES
from tests.client.conftest import Connect
from tests.client.server import CutWire, Served, free_port
from tests.faults import NEVER_SENT, UNAVAILABLE

FORGED = Receipt("chores", "A" * 44)


def taken(client: Any, **settings: Any) -> Message:
    client.create_queue("chores", **settings)
    client.put("chores", b"one")
    (message,) = client.receive("chores")
    assert isinstance(message, Message)
    return message


# --- the request is wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("queue", ("nowhere",)), ("delete_queue", ("nowhere",)), ("change_queue", ("nowhere",)),
        ("purge", ("nowhere",)),
        ("put", ("nowhere", b"x")), ("put_many", ("nowhere", [b"x", b"y"])), ("receive", ("nowhere",)),
        ("peek", ("nowhere",)), ("dead_letters", ("nowhere",)), ("redrive", ("nowhere",)), ("pointers", ("nowhere",)),
        ("buckets", ("nowhere",)), ("move_back", ("nowhere", 0, 0)), ("ack", (Receipt("nowhere", "A" * 44),)),
        ("extend", (Receipt("nowhere", "A" * 44), 1)), ("release", (Receipt("nowhere", "A" * 44),)),
        ("change", (Receipt("nowhere", "A" * 44), b"x")),
    ],
)
def test_an_unknown_queue(client: Any, verb: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(QueueNotFound, match="there is no queue 'nowhere'") as raised:
        client_call(client, verb, arguments)
    assert raised.value.name == "nowhere"


def client_call(client: Any, verb: str, arguments: tuple[Any, ...]) -> Any:
    settings = {"lanes": 2} if verb == "change_queue" else {}
    return getattr(client, verb)(*arguments, **settings)


def test_acks_in_an_unknown_queue(client: Any) -> None:
    (failure,) = client.ack_many([Receipt("nowhere", "A" * 44)])
    assert isinstance(failure.error, QueueNotFound)


def test_a_queue_with_other_settings_exists(client: Any) -> None:
    client.create_queue("chores", lanes=2)
    with pytest.raises(QueueExists, match="lanes") as raised:
        client.create_queue("chores", lanes=3, retention=None)
    assert raised.value.differing == ("lanes", "retention")


def test_a_forged_receipt(client: Any) -> None:
    client.create_queue("chores")
    for verb, arguments in (("ack", ()), ("extend", (5,)), ("release", ()), ("change", (b"x",))):
        with pytest.raises(InvalidReceipt) as raised:
            getattr(client, verb)(FORGED, *arguments)
        assert raised.value.field == "receipt"
        assert "the receipt" not in str(raised.value), "the error says by itself what it is about"
    (failure,) = client.ack_many([FORGED])
    assert isinstance(failure.error, InvalidReceipt)


@pytest.mark.parametrize("text", ["", ".", "..", None])
def test_a_receipt_that_would_change_the_path_is_not_sent(server: Served, client: Any, text: Any) -> None:
    """DELETE /queues/chores/message/.. would be DELETE /queues/chores/ to some on the way."""
    with pytest.raises(InvalidReceipt):
        client.ack(Receipt("chores", text))
    assert server.requests == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", "x" * 81, None])
def test_a_name_that_would_change_the_path_is_not_sent(server: Served, client: Any, name: Any) -> None:
    with pytest.raises(InvalidRequest) as raised:
        client.delete_queue(name)
    assert raised.value.field == "queue"
    assert server.requests == []


def test_a_stale_receipt(client: Any) -> None:
    message = taken(client)
    client.release(message)
    (again,) = client.receive("chores")
    for verb, arguments in (("ack", ()), ("extend", (5,)), ("release", ()), ("change", (b"x",))):
        with pytest.raises(StaleReceipt):
            getattr(client, verb)(message, *arguments)
    (failure,) = client.ack_many([message, again])
    assert failure.receipt == Receipt("chores", message.receipt)
    assert isinstance(failure.error, StaleReceipt)


@pytest.mark.parametrize(
    ("settings", "field"),
    [({"lanes": 0}, "lanes"), ({"visibility_timeout": -1}, "visibility_timeout"), ({"colour": "red"}, "colour")],
)
def test_a_wrong_setting_is_named(client: Any, settings: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        client.create_queue("chores", **settings)
    assert raised.value.field == field
    assert str(raised.value).count(f"{field}: ") == 1


def test_a_fixed_setting_cannot_change(client: Any) -> None:
    client.create_queue("chores")
    with pytest.raises(InvalidRequest) as raised:
        client.change_queue("chores", bucket_size=5)
    assert raised.value.field == "bucket_size"


def test_wrong_values_are_named(client: Any) -> None:
    message = taken(client)
    for field, call in {
        "count": lambda: client.receive("chores", 0),
        "wait": lambda: client.receive("chores", wait=1e9),
        "visibility": lambda: client.extend(message, -1),
        "key": lambda: client.put("chores", b"x", key=""),
        "delay": lambda: client.put("chores", b"x", delay=-1),
        "due": lambda: client.put("chores", b"x", due=datetime(2030, 1, 1)),  # noqa: DTZ001 - what is to be refused
        "body": lambda: client.put("chores", b"x" * (limits.BODY_BYTES + 1)),
        "dead_letter_queue": lambda: client.dead_letters("chores"),
    }.items():
        with pytest.raises(InvalidRequest) as raised:
            call()
        assert raised.value.field == field


def test_a_body_that_is_none_is_not_sent(server: Served, client: Any) -> None:
    for body in ("\ud800", None, 3):
        for call in (
            lambda body=body: client.put("chores", body),
            lambda body=body: client.put_many("chores", [b"good", body]),
            lambda body=body: client.change(FORGED, body),
        ):
            with pytest.raises(InvalidRequest) as raised:
                call()
            assert raised.value.field == "body"
    assert server.requests == []


def test_a_body_that_is_larger_than_any_request(client: Any) -> None:
    client.create_queue("chores")
    with pytest.raises(AngelhairError) as raised:
        client.put("chores", b"x" * (limits.HTTP_BODY_BYTES + 1))
    # Whether the refusal is read before the wire breaks under so much is up to the kernel.
    assert isinstance(raised.value, InvalidRequest | OutcomeUnknown)


def test_many_of_which_one_is_wrong(client: Any) -> None:
    client.create_queue("chores")
    with pytest.raises(InvalidRequest) as raised:
        client.put_many("chores", [b"good", Draft(b"bad", key="x" * (limits.KEY_LENGTH + 1))])
    assert "key" in raised.value.field
    assert client.receive("chores") == []


def test_what_cannot_be_said_in_a_request_is_not_sent(server: Served, client: Any) -> None:
    for field, value in (
        ("key", "\ud800"), ("key", 7), ("content_type", "text/plain\r\nX: y"), ("content_type", "ä"),
        ("content_type", 7), ("due", "tomorrow"),
    ):
        for call in (
            lambda field=field, value=value: client.put("chores", b"x", **{field: value}),
            lambda field=field, value=value: client.put_many("chores", [Draft(b"x", **{field: value})]),
        ):
            with pytest.raises(InvalidRequest) as raised:
                call()
            assert raised.value.field == field
    assert server.requests == []


@pytest.mark.parametrize("url", ["", "127.0.0.1:9324", "ftp://127.0.0.1", "http://", "http://\x00", None])
def test_an_address_that_is_none_is_refused_at_once(connect: Connect, url: Any) -> None:
    with pytest.raises(InvalidRequest) as raised:
        connect(url)
    assert raised.value.field == "url"


def test_an_address_without_such_a_server(server: Served, connect: Connect) -> None:
    with pytest.raises(RequestError, match="not_found"):
        connect(f"{server.url}/elsewhere").queue("chores")


# --- the store or the wire ------------------------------------------------------------------------------------------


def test_the_store_is_unavailable(server: Served, connect: Connect) -> None:
    client = connect(server.url, retry=None)
    client.create_queue("chores")
    server.faults.next("change", schema.SEQUENCES, UNAVAILABLE, times=1_000)
    with pytest.raises(Unavailable):
        client.put("chores", b"x")
    (outcome,) = client.put_many("chores", [b"x"])
    assert isinstance(outcome.error, Unavailable)
    assert outcome.id is None


def test_the_store_does_not_say_what_it_did(server: Served, connect: Connect) -> None:
    client = connect(server.url, retry=None)
    client.create_queue("chores")
    server.faults.next("write", schema.BODIES, NEVER_SENT, times=1_000)
    with pytest.raises(OutcomeUnknown):
        client.put("chores", b"x")
    (outcome,) = client.put_many("chores", [b"x"])
    assert isinstance(outcome.error, OutcomeUnknown)


def test_some_of_many_are_not_put(server: Served, connect: Connect) -> None:
    """Bodies of one bucket are written together: with buckets of one, one message of three can fail alone."""
    client = connect(server.url, retry=None)
    client.create_queue("chores", bucket_size=1)
    server.faults.next(
        "write", schema.BODIES, UNAVAILABLE, times=1_000, when=lambda write: write.rows[0].values["body"] == b"b"
    )
    good, bad, also_good = client.put_many("chores", [b"a", b"b", b"c"])
    assert isinstance(bad.error, Unavailable | OutcomeUnknown)
    assert good.id
    assert also_good.id
    assert [message.body for message in client.peek("chores")] == [b"a", b"c"]


def test_nobody_listens(connect: Connect) -> None:
    client = connect(f"http://127.0.0.1:{free_port()}", retry=None)
    with pytest.raises(Unavailable, match="is a server running there\\? `angelhair serve` starts one"):
        client.put("chores", b"x")
    with pytest.raises(Unavailable):
        client.queue("chores")
    (outcome,) = client.put_many("chores", [b"x"])
    assert isinstance(outcome.error, Unavailable)
    (failure,) = client.ack_many([FORGED])
    assert isinstance(failure.error, Unavailable)


def test_a_server_that_speaks_http_only(server: Served, connect: Connect) -> None:
    client = connect(server.url.replace("http:", "https:"), retry=None)
    with pytest.raises(Unavailable, match="does this server speak https, or plain http\\?"):
        client.put("chores", b"x")


def test_the_answer_is_lost(server: Served, connect: Connect) -> None:
    with CutWire(server.port) as wire:
        client = connect(wire.url, retry=None)
        client.create_queue("chores")
        wire.lose(1)
        with pytest.raises(OutcomeUnknown):
            client.put("chores", b"x")
        wire.lose(1)
        with pytest.raises(Unavailable):
            client.queue("chores")
        client.close()
    assert [path for _, path, _ in server.requests].count("/queues/chores/message") == 1


@contextmanager
def leaving(reset: bool) -> Iterator[str]:
    """Takes one connection, reads a little, and ends it: at once and for good, or as is usual."""
    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            read = connection.recv(1)
            while not reset and b"all of it" not in read:
                read += connection.recv(65536)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve)
        server.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.join()


@pytest.mark.parametrize("reset", [True, False])
def test_a_server_that_ends_the_connection_without_a_word(connect: Connect, reset: bool) -> None:
    with leaving(reset) as url:
        client = connect(url, retry=None)
        with pytest.raises(OutcomeUnknown, match="was it stopped just then, or does this server speak https\\?"):
            client.put("chores", b"all of it")


@contextmanager
def silent() -> Iterator[str]:
    """Accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_the_answer_takes_too_long(connect: Connect) -> None:
    with silent() as url:
        client = connect(url, retry=None, timeout=0.2)
        with pytest.raises(OutcomeUnknown, match="ReadTimeout"):
            client.put("chores", b"x")


@contextmanager
def saying(answer: bytes) -> Iterator[str]:
    """Not Angelhair: a proxy, or another program. Says the same to everybody, once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            visitor, _ = listening.accept()
            with visitor:
                visitor.recv(65_536)
                visitor.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            thread.join()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", OutcomeUnknown),
        (b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}", OutcomeUnknown),
        (b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{", OutcomeUnknown),
        (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nhello", OutcomeUnknown),
        (b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nhello", OutcomeUnknown),
        (b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", Unavailable),
        (b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", RequestError),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\n[42]", RequestError),
        (b"SSH-2.0-OpenSSH_9.6\r\n", OutcomeUnknown),
    ],
)
def test_an_answer_that_is_not_ours(connect: Connect, answer: bytes, error: type[AngelhairError]) -> None:
    with saying(answer) as url:
        client = connect(url, retry=None)
        with pytest.raises(AngelhairError) as raised:
            client.put("chores", b"x")
    assert type(raised.value) is error


# --- codes ----------------------------------------------------------------------------------------------------------

MEANINGS: dict[str, type[AngelhairError]] = {
    "invalid_request": InvalidRequest,
    "invalid_receipt": InvalidReceipt,
    "malformed_json": RequestError,
    "malformed_request": RequestError,
    "unauthorized": NotAllowed,
    "forbidden": NotAllowed,
    "queue_not_found": QueueNotFound,
    "no_dead_letter_queue": InvalidRequest,
    "not_found": RequestError,
    "method_not_allowed": RequestError,
    "request_timeout": Unavailable,
    "queue_exists": QueueExists,
    "topic_not_found": TopicNotFound,
    "topic_exists": TopicExists,
    "subscription_not_found": SubscriptionNotFound,
    "dead_letters_elsewhere": InvalidRequest,
    "stale_receipt": StaleReceipt,
    "body_too_large": InvalidRequest,
    "url_too_long": RequestError,
    "unsupported_media_type": RequestError,
    "headers_too_large": RequestError,
    "internal_error": OutcomeUnknown,
    "not_implemented": RequestError,
    "unavailable": Unavailable,
    "too_many_connections": Unavailable,
    "outcome_unknown": OutcomeUnknown,
}


def test_every_code_of_the_server_is_known_here() -> None:
    assert set(CODES) - {"message_gone"} == set(MEANINGS)


@pytest.mark.parametrize("code", sorted(MEANINGS))
def test_a_code_becomes_its_error(code: str) -> None:
    body = b'{"code": "%s", "message": "because", "request_id": "1"}' % code.encode()
    error = refusal(Answer(CODES[code].status, {}, body), "chores")
    assert type(error) is MEANINGS[code]
    assert "because" in str(error)


def test_the_field_is_said_once() -> None:
    body = b'{"code": "body_too_large", "message": "body: has 2 bytes", "field": "body", "request_id": "1"}'
    assert str(refusal(Answer(413, {}, body), "chores")) == "body: has 2 bytes"


def test_a_message_that_is_gone() -> None:
    error = refusal(Answer(409, {}, b'{"code": "message_gone", "message": "gone", "request_id": "1"}'), "chores")
    assert type(error) is MessageGone


def test_a_new_code_is_told_by_its_status() -> None:
    for status, kind in ((418, RequestError), (507, OutcomeUnknown)):
        error = refusal(Answer(status, {}, b'{"code": "novel", "message": "because", "request_id": "1"}'), "chores")
        assert type(error) is kind
        assert str(error) == "novel: because"


