"""A hostile request of each protocol, by seed: a good one of any action, broken in what it says or in how."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote, quote_from_bytes

import botocore.serialize
import botocore.session

from angelhair.server.sqs.errors import Protocol
from tests.wire.hostile.framing import Sent, framed
from tests.wire.hostile.good import REQUESTS, REST
from tests.wire.hostile.good_topics import TOPICS
from tests.wire.hostile.values import broken, scratched, text, value
from tests.wire.sqs.amazon import asked_for

SNS_MODEL = botocore.session.get_session().get_service_model("sns")
_sns = botocore.serialize.create_serializer("query", include_validation=False)

DOCUMENTS = (
    b"", b"{", b"null", b"[]", b'"x"', b"NaN", b"{}{}", b"\xef\xbb\xbf{}", b'{"QueueUrl":"\\ud800"}', b"[" * 30_000,
    b'{"a":' * 20_000, b'{"DelaySeconds":' + b"9" * 5_000 + b"}", b'{"DelaySeconds":1e999}',
    b'{"MessageBody":"' + b"x" * 1_100_000 + b'"}', b"\x00" * 99, b'{"QueueUrl":1,"QueueUrl":"2"}',
    '{"QueueUrl":"é"}'.encode("utf-16"), b"<SendMessage/>", b"Action=SendMessage", b"{'a': 1}",
    b'{"Attributes":{' + b",".join(b'"%d":""' % number for number in range(9_000)) + b"}}",
)
PATHS = (
    b"/", b"/", b"/", b"/000000000000/orders", b"/queue/orders", b"//", b"/%00", b"/%ff/%fe",
    b"/000000000000/orders/", b"*", b"/..%2f..", b"/000000000000/" + b"x" * 200, b"/?Action=SendMessage",
    b"/000000000000/orders?Version=2012-11-05&Action=%3Cb%3E", b"/\xc3\xa9", b"http://127.0.0.1/000000000000/orders",
    b"/;a=b", b"/000000000000/orders#",
)
TARGETS = (
    b"", b"AmazonSQS", b"AmazonSQS.", b"AmazonSQS.Absent", b"AmazonSNS.Publish", b"AmazonSQS.__init__",
    b"AmazonSQS.<b>&]]>", b"AmazonSQS.\xff\xfe", b"AmazonSQS." + b"x" * 5_000, b"DynamoDB_20120810.PutItem",
    b"AmazonSQS.SendMessage, x", b"\t",
)
FORMS = (
    b"", b"&&&&", b"=", b"====", b"%", b"Action", b"Action=%zz", b"Action=%ff", b"Action=" + b"x" * 9_000,
    b"\x00\xff", b"&".join(b"a.%d=b" % number for number in range(20_000)), b"Action=SendMessage;Version=2012-11-05",
    b"Action=&Action=",
)
STEPS = (
    "", "0", "-1", "01", "1.1.1.1", "9" * 30, "x", "member", "entry", "Value", "Name", "key.value", "²", "1" * 4_000,
)


def in_json(dice: random.Random) -> Sent:
    action, members = dice.choice(REQUESTS)
    target, path = f"AmazonSQS.{action}".encode(), b"/"
    body = _document(members, dice)
    way = dice.random()
    if way < 0.1:
        target = dice.choice(TARGETS)
    elif way < 0.15:
        path = dice.choice(PATHS)
    method = "POST" if dice.random() < 0.97 else dice.choice(["GET", "PUT", "HEAD", "PATCH", "BREW"])
    headers = [b"X-Amz-Target: " + target, b"Content-Type: application/x-amz-json-1.0"]
    return framed(method, path, headers, body, dice)


def _document(members: Any, dice: random.Random) -> bytes:
    way = dice.random()
    if way < 0.05:
        return dice.choice(DOCUMENTS)
    if way < 0.1:
        return _encoded(value(dice))
    if way < 0.15:
        return _encoded(members)
    if way < 0.3:
        return scratched(_encoded(members), dice)
    return _encoded(broken(members, dice))


def _encoded(document: Any) -> bytes:
    """As Python writes it: with the numbers that JSON does not have, and halves of characters."""
    return json.dumps(document).encode()


def in_query(dice: random.Random) -> Sent:
    action, members = dice.choice(REQUESTS)
    return _form(parse_qsl(asked_for(action, members, Protocol.QUERY).body.decode(), keep_blank_values=True), dice)


def in_sns(dice: random.Random) -> Sent:
    action, members = dice.choice(TOPICS)
    written = _sns.serialize_to_request(members, SNS_MODEL.operation_model(action))
    return _form([(name, str(said)) for name, said in written["body"].items()], dice)


def _form(pairs: list[tuple[str, str]], dice: random.Random) -> Sent:
    for _ in range(dice.choice([0, 1, 1, 2, 6])):
        _break_pair(pairs, dice)
    form = "&".join(f"{quote(name, safe='.', errors='surrogatepass')}={quote(said, safe='', errors='surrogatepass')}"
                    for name, said in pairs).encode()
    way = dice.random()
    if way < 0.05:
        form = dice.choice(FORMS)
    elif way < 0.2:
        form = scratched(form, dice)
    path = b"/" if dice.random() < 0.85 else dice.choice(PATHS)
    if dice.random() < 0.15:
        target = path.partition(b"?")[0] + b"?" + quote_from_bytes(form, "=&%+.").encode()[:60_000]
        return framed("GET", target, [], b"", dice)
    media_type = b"application/x-www-form-urlencoded"
    if dice.random() < 0.05:
        media_type = dice.choice([media_type + b"; charset=utf-16", b"text/plain", b"", b"\xff", b"a" * 900])
    method = "POST" if dice.random() < 0.97 else dice.choice(["PUT", "HEAD", "DELETE", "BREW"])
    return framed(method, path, [b"Content-Type: " + media_type], form, dice)


def _break_pair(pairs: list[tuple[str, str]], dice: random.Random) -> None:
    at = dice.randrange(len(pairs)) if pairs else 0
    name, said = pairs[at] if pairs else ("x", "")
    match dice.randrange(6):
        case 0 if pairs:
            del pairs[at]
        case 1:
            pairs.insert(at, (name, text(dice)))
        case 2:
            steps = name.split(".")
            steps[dice.randrange(len(steps))] = dice.choice([*STEPS, text(dice)])
            pairs.append((".".join(steps), said))
        case 3:
            pairs.append((name + "." + dice.choice(STEPS), said))
        case 4:
            pairs.append((name.rpartition(".")[0] or text(dice), text(dice)))
        case _:
            if pairs:
                pairs[at] = (name, text(dice))


def in_rest(dice: random.Random) -> Sent:
    method, path, query, document = dice.choice(REST)
    way = dice.random()
    if way < 0.3:
        steps = path.split("/")
        steps[dice.randrange(1, len(steps))] = quote(text(dice), safe="", errors="surrogatepass")
        path = "/".join(steps)
    elif way < 0.6 and query:
        query = {**query, dice.choice(list(query)): text(dice)}
        if dice.random() < 0.2:
            query[text(dice)] = text(dice)
    if dice.random() < 0.1:
        # Whoever deletes the queue leaves nothing to attack.
        methods = ["GET", "PUT", "POST", "PATCH", "HEAD", "OPTIONS", "BREW"]
        method = dice.choice(methods if path == "/queues/orders" else [*methods, "DELETE"])
    target = path.encode()
    if query:
        target += b"?" + "&".join(f"{quote(name)}={quote(said)}" for name, said in query.items()).encode()
    if dice.random() < 0.05:
        endings = (b"?%zz=%ff&&=", b"?wait=nan", b"?visibility=inf", b"/")
        target = dice.choice([target + dice.choice(endings), target.replace(b"/", b"//"), dice.choice(PATHS)])
    body = b"" if document is None else _document(document, dice)
    media_type = dice.choice([b"application/json"] * 9 + [b"text/plain", b"application/json; charset=latin-1", b"\xff"])
    return framed(method, target, [b"Content-Type: " + media_type], body, dice)


PROTOCOLS: dict[str, Callable[[random.Random], Sent]] = {
    "json": in_json, "query": in_query, "rest": in_rest, "sns": in_sns,
}


def hostile(protocol: str, count: int, seed: int) -> Iterator[Sent]:
    dice = random.Random(seed)
    for _ in range(count):
        yield PROTOCOLS[protocol](dice)
