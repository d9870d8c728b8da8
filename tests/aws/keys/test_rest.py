"""The REST door and the Python client with access keys."""

from __future__ import annotations

import http.client
from pathlib import Path
from random import Random

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from angelhair import Client, limits
from angelhair.cli.main import main
from angelhair.errors import NotAllowed
from tests.aws.keys.keyed import Key, Keyed, keyed, until


def test_rest_takes_a_key_and_its_secret(server: Keyed, shop: Key, partner: Key, name: str) -> None:
    with server.rest(shop) as line, server.rest(partner) as other:
        assert line.put(f"/queues/{name}").status_code == 201
        assert line.put(f"/queues/{name}/message", content=b"hello").status_code == 201
        assert name in line.get("/queues").json()["queues"]
        assert name not in other.get("/queues").json()["queues"]
        missing = other.get(f"/queues/{name}")
        assert (missing.status_code, missing.json()["code"]) == (404, "queue_not_found")
        (message,) = line.get(f"/queues/{name}/messages/1").json()["messages"]
        assert line.delete(f"/queues/{name}/message/{message['receipt']}").status_code == 204
        assert line.delete(f"/queues/{name}").status_code == 204
    for key in (None, Key(shop.id, "wrong", ""), Key("nobody", shop.secret, ""), Key("", "", "")):
        with server.rest(key) as line:
            refused = line.get("/queues")
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
        assert refused.headers["www-authenticate"].startswith("Basic ")
        assert ("asks for an access key" in refused.json()["message"]) is (key is None)
        if key is not None:
            named = f"access key {key.id}" if key.id == shop.id else "the access key"
            assert refused.json()["message"] == (
                f"{named} is unknown or disabled, or its secret is wrong; see 'angelhair key list'")
    for damaged in ("Basic", "Basic !", "Basic /w==", "Bearer x"):
        assert httpx.get(f"{server.url}/queues", headers={"authorization": damaged}).status_code == 401


def test_rest_says_the_same_of_every_key_that_does_not_fit(server: Keyed, shop: Key) -> None:
    """Else anybody could find out which ids there are. A secret in the id's place is not repeated."""
    disabled = server.key(shop.account)
    server.run("key", "disable", disabled.id)
    said = set()
    swapped = Key(disabled.secret, disabled.id, "")
    for key in (disabled, Key(disabled.id, "wrong", ""), Key("AHKIAJ4EXAMPLE234567", "x", ""), swapped):

        def refused(key: Key = key) -> str:
            with server.rest(key) as line:
                answer = line.get("/queues")
            return str(answer.json()["message"]) if answer.status_code == 401 else ""

        said.add(until(refused).replace(f"access key {key.id}", "the access key"))
    assert said == {"the access key is unknown or disabled, or its secret is wrong; see 'angelhair key list'"}


def test_rest_takes_a_signature(server: Keyed, shop: Key) -> None:
    def answer(path: str, sent: str | None = None, service: str = "angelhair") -> httpx.Response:
        request = AWSRequest("GET", server.url + path)
        SigV4Auth(Credentials(shop.id, shop.secret), service, "eu-west-1").add_auth(request)
        with httpx.Client() as line:
            raw = line.build_request("GET", server.url + path, headers=dict(request.headers))
            raw.extensions["target"] = (sent or path).encode()
            return line.send(raw)

    assert answer("/queues?prefix=none").json()["queues"] == []
    assert answer("/queues", service="sqs").status_code == 401
    assert answer("/queues", "/queues?limit=1").status_code == 401
    # The same canonical path, which this door would read as another one.
    assert answer("/queues", "//queues").status_code in (401, 404)
    assert answer("/queues/x", "/queues/x/message/..").status_code in (401, 405)
    assert answer("/queues/x", "/queues/./x").status_code in (401, 404)


def test_rest_knows_what_a_key_is_limited_to(server: Keyed, shop: Key, name: str) -> None:
    limited = server.key(shop.account, queues=f"{name}*", actions="SendMessage,CreateQueue,StartMessageMoveTask")
    with server.rest(limited) as line:
        assert line.put(f"/queues/{name}").status_code == 201
        assert line.put(f"/queues/{name}/message", content=b"x").status_code == 201
        for answer in (
            line.get("/queues"), line.get("/cluster"), line.get(f"/queues/{name}"),
            line.get(f"/queues/{name}/messages/1"),
            line.put("/queues/elsewhere"), line.delete(f"/queues/{name}"), line.get(f"/queues/{name}/peek/1"),
            line.put(f"/queues/{name}-2", json={"dead_letter_queue": "elsewhere", "max_deliveries": 1}),
            line.post(f"/queues/{name}/redrive", json={"destination": "elsewhere"}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert line.put(f"/queues/{name}-2", json={"dead_letter_queue": name, "max_deliveries": 1}).status_code == 201
    looking = server.key(shop.account, queues=f"{name}-2", actions="ReceiveMessage")
    with server.rest(looking) as line:
        assert line.get(f"/queues/{name}-2/dead/1").status_code == 403, "its dead letters lie in another queue"
    operator = server.key(shop.account, actions="DescribeCluster")
    with server.rest(operator) as line:
        assert line.get("/cluster").json().keys() == {"server", "members"}
        assert line.get("/queues").status_code == 403
    with server.rest(shop) as line:
        assert line.get("/cluster").status_code == 200
        assert line.get(f"/queues/{name}-2/dead/1").status_code == 200
        for each in (name, f"{name}-2"):
            assert line.delete(f"/queues/{each}").status_code == 204


def test_topics_are_of_the_keys_account_and_within_its_limits(
    server: Keyed, shop: Key, partner: Key, name: str
) -> None:
    limited = server.key(shop.account, queues=f"{name}*", actions="Publish,Subscribe,CreateTopic,CreateQueue")
    with server.rest(shop) as whole, server.rest(partner) as other, server.rest(limited) as line:
        for each in (name, f"elsewhere-{name}"):
            assert whole.put(f"/queues/{each}").status_code == 201
        assert line.put(f"/topics/{name}").status_code == 201
        assert line.put(f"/topics/{name}/queues/{name}").status_code == 201
        assert line.put(f"/topics/{name}/message", content=b"hello").status_code == 201
        for answer in (
            line.get("/topics"), line.get(f"/topics/{name}"), line.delete(f"/topics/{name}"),
            line.put("/topics/elsewhere"), line.put(f"/topics/{name}/queues/elsewhere-{name}"),
            line.delete(f"/topics/{name}/queues/{name}"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        missing = other.put(f"/topics/{name}/message", content=b"x")
        assert (missing.status_code, missing.json()["code"]) == (404, "topic_not_found")
        assert other.put(f"/topics/{name}-theirs").status_code == 201
        listed = other.get("/topics").json()["topics"]
        assert f"{name}-theirs" in listed and name not in listed
        assert other.delete(f"/topics/{name}-theirs").status_code == 204
        (message,) = whole.get(f"/queues/{name}/messages/1?wait=30").json()["messages"]
        assert message["body"] == "hello"
        for path in (f"/topics/{name}", f"/queues/{name}", f"/queues/elsewhere-{name}"):
            assert whole.delete(path).status_code == 204
    (deleted,) = until(lambda: server.lines("angelhair.audit", action="DeleteTopic", queue=name, outcome="done"))
    assert deleted["event"] == "administered"


def test_the_python_client_shows_its_key(
    server: Keyed, shop: Key, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client(server.url, key_id=shop.id, secret=shop.secret) as client:
        client.create_queue(name)
    monkeypatch.setenv("ANGELHAIR_KEY_ID", shop.id)
    monkeypatch.setenv("ANGELHAIR_SECRET", shop.secret)
    with Client(server.url) as client:
        client.put(name, "hello")
        (message,) = client.receive(name)
        assert message.text == "hello"
        client.delete_queue(name)
    with Client(server.url, key_id=shop.id, secret="wrong") as client, pytest.raises(NotAllowed, match="secret is"):
        client.put(name, "hello")


def test_whatever_is_shown_in_place_of_a_key_is_refused_in_its_form(tmp_path: Path) -> None:
    """Hostile words to all doors: refused by the client's own fault, never by an error of ours. They fill no log."""
    with keyed(tmp_path) as server:
        _try_hostile_words(server, server.key())
        assert len(server.lines("angelhair.audit", event="refused")) <= 2 * limits.AUDIT_REFUSALS


def _try_hostile_words(server: Keyed, shop: Key) -> None:
    dice = Random(20_261_116)
    host, port = server.url.removeprefix("http://").split(":")
    line = http.client.HTTPConnection(host, int(port), timeout=60)
    scope = f"Credential={shop.id}/20261116/us-east-1/sqs/aws4_request"
    beginnings = ["", "Basic ", "basic ", "Bearer ", "AWS4-HMAC-SHA256 ", f"AWS4-HMAC-SHA256 {scope}, ", "Digest "]
    letters = "=/,;:+ \t%AHKIaz09~é\xff" + "\x80"
    targets = ("/", "/queues", "/queues/a/message", f"/{shop.account}/a", "/?Action=ListQueues&Version=2012-11-05",
               "/?Action=GetCallerIdentity&Version=2011-06-15", "/queues/..", "/queues/%2e%2e/message")
    for _ in range(400):
        shown = dice.choice(beginnings) + "".join(dice.choices(letters, k=dice.randrange(60)))
        target, method = dice.choice(targets[1:]), dice.choice(("GET", "POST", "PUT", "DELETE"))
        headers = {"Authorization": shown.encode("latin-1")}
        if dice.random() < 0.3:
            target, method = "/", "POST"
            headers["X-Amz-Target"] = b"AmazonSQS." + dice.choice((b"ListQueues", b"SendMessage", b"x", b""))
        line.request(method, target, b"{}", headers)  # type: ignore[arg-type]
        answer = line.getresponse()
        said = answer.read()
        assert 400 <= answer.status < 500, (method, target, shown, said)
        assert b"Traceback" not in said and shop.secret.encode() not in said
    line.close()


def test_the_command_says_where_it_takes_a_key_from(
    server: Keyed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANGELHAIR_KEY_ID", raising=False)
    assert main(["queue", "list", "--server", server.url]) == 1
    assert capsys.readouterr().err == (
        "angelhair queue list: this server asks for an access key: its id and secret as user and password, or a "
        "signature; this command takes them from ANGELHAIR_KEY_ID and ANGELHAIR_SECRET\n"
    )
