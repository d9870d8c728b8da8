"""Signed requests to be spoiled, and the means to spoil them: `edit` a part of the signature in whichever form it is.

A kind of mutation is a function from dice and a signed request to a spoiled one, or to None where it does not apply.
Each belongs to one part of a request, and makes that part differ in what is signed, or break a rule. Kinds of different
parts cannot undo one another, so mutations are combined from different parts only: no combination is the request that
was signed, and none may be accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple
from urllib.parse import quote, unquote

from angelhair.server.http.messages import Request
from tests.wire.signing.signers import ALICE, BOB, NOW, by_botocore, by_runtime


@dataclass(frozen=True)
class Sent:
    request: Request
    presigned: bool
    """The signature was put into the query, whatever has become of it."""
    now_seconds: float = NOW

    def with_(self, **changes: object) -> Sent:
        return replace(self, request=replace(self.request, **changes))  # type: ignore[arg-type]

    def with_header(self, name: str, value: str | None) -> Sent:
        headers = dict(self.request.headers)
        headers.pop(name, None)
        if value is not None:
            headers[name] = value
        return self.with_(headers=headers)


Apply = Callable[[Random, Sent], Sent | None]


class Kind(NamedTuple):
    name: str
    part: str
    apply: Apply


KINDS: list[Kind] = []
SIGNATURE_PARTS = ("credential", "signed headers", "signature", "date", "expires", "algorithm", "form")
PARTS = (
    "clock", "method", "header", "unsigned header", "body", "body hash", "path", "query", *SIGNATURE_PARTS,
    "authorization",
)
"""In the order in which they are spoiled, so that each finds in order what it has to read first."""


def kind(part: str) -> Callable[[Apply], Apply]:
    def kept(apply: Apply) -> Apply:
        KINDS.append(Kind(apply.__name__, part, apply))
        return apply

    return kept


# --- signed requests ------------------------------------------------------------------------------------------------

JSON = [
    ("Content-Type", "application/x-amz-json-1.0"), ("X-Amz-Target", "AmazonSQS.SendMessage"), ("User-Agent", "test/1"),
]
FORM = [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]
BODY = b'{"QueueUrl":"http://127.0.0.1/111111111111/orders","MessageBody":"hello"}'
QUERY = "Action=SendMessage&MessageBody=a%20b%2Bc&QueueUrl=x%2Fy&Version=2012-11-05"


def originals() -> list[Sent]:
    """All verify; the tests see to it before they spoil them."""
    return [
        Sent(request, presigned="X-Amz-Signature=" in request.query)
        for request in (
            by_botocore("POST", "/", JSON, BODY),
            by_botocore("POST", "/111111111111/orders", FORM, QUERY.encode(), key=BOB),
            by_botocore("GET", f"/111111111111/orders?{QUERY}"),
            by_botocore("GET", f"/111111111111/orders?{QUERY}", expires=3_600),
            by_botocore("GET", f"/?{QUERY}", expires=604_800, key=BOB, service="sns"),
            by_runtime("POST", "/", JSON, BODY, body_header=True),
            by_runtime("POST", "/a%20b/orders/", [*FORM, ("Other", "a  b"), ("Other", "c")], QUERY.encode()),
            by_runtime("GET", f"/111111111111/orders?{QUERY}", key=BOB),
            by_runtime("GET", f"/111111111111/orders?{QUERY}", expires=60),
            by_runtime("POST", f"/x?{QUERY}", [("X-Amz-Meta", "meta"), *FORM], BODY, expires=900, service="sns"),
        )
    ]


# --- parts of a signature, in either form ----------------------------------------------------------------------------

_IN_QUERY = {
    "Algorithm": "X-Amz-Algorithm", "Credential": "X-Amz-Credential", "SignedHeaders": "X-Amz-SignedHeaders",
    "Signature": "X-Amz-Signature", "Date": "X-Amz-Date", "Expires": "X-Amz-Expires",
}


def parts_of(authorization: str) -> dict[str, str]:
    algorithm, _, rest = authorization.partition(" ")
    return {"Algorithm": algorithm, **dict(part.split("=", 1) for part in rest.split(", "))}


def parameters_of(query: str) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part)]


def query_of(parameters: list[tuple[str, str]]) -> str:
    return "&".join(f"{name}={value}" for name, value in parameters)


def part(sent: Sent, name: str) -> str:
    if sent.presigned:
        return unquote(dict(parameters_of(sent.request.query))[_IN_QUERY[name]])
    if name == "Date":
        return sent.request.headers["x-amz-date"]
    return parts_of(sent.request.headers["authorization"])[name]


def edit(sent: Sent, name: str, value: str | None) -> Sent | None:
    """Another value of one part of the signature, or, for None, without it; None when it has that value already."""
    if sent.presigned:
        parameters = parameters_of(sent.request.query)
        found = [each for each, _ in parameters].index(_IN_QUERY[name])
        if unquote(parameters[found][1]) == value:
            return None
        parameters[found : found + 1] = [] if value is None else [(_IN_QUERY[name], quote(value, safe=""))]
        return sent.with_(query=query_of(parameters))
    if name == "Expires":
        return None
    if name == "Date":
        return None if sent.request.headers["x-amz-date"] == value else sent.with_header("x-amz-date", value)
    parts = parts_of(sent.request.headers["authorization"])
    if parts.pop(name) == value:
        return None
    algorithm = parts.pop("Algorithm", value if name == "Algorithm" else None)
    if name != "Algorithm" and value is not None:
        parts[name] = value
    listed = ", ".join(f"{each}={text}" for each, text in parts.items())
    return sent.with_header("authorization", listed if algorithm is None else f"{algorithm} {listed}")


def other_character(dice: Random, character: str) -> str:
    """Another one, and not its other case."""
    return dice.choice([each for each in "abcdefghijkmnpqrstuvwxyz2345789" if each != character.lower()])


def letters_of(text: str) -> list[int]:
    """Where its letters and digits are that are not part of an escape."""
    return [
        index for index, character in enumerate(text)
        if character.isascii() and character.isalnum() and "%" not in text[max(0, index - 2) : index]
    ]


def changed(dice: Random, text: str) -> str:
    """One letter or digit of it is another."""
    index = dice.choice(letters_of(text))
    return text[:index] + other_character(dice, text[index]) + text[index + 1 :]


def other_key(access_key_id: str) -> str:
    return BOB.id if access_key_id == ALICE.id else ALICE.id


def mutations(seed: int, count: int) -> Iterator[tuple[str, Sent]]:
    """Seeded: so many spoiled requests, each with the names of what was done to it, one to three kinds at once."""
    dice = Random(seed)
    sources = originals()
    while count:
        sent = dice.choice(sources)
        chosen: dict[str, Kind] = {}
        for kind in dice.choices(KINDS, k=dice.choice([1, 1, 2, 3])):
            chosen.setdefault(_part(kind, sent), kind)
        done = []
        for kind in sorted(chosen.values(), key=lambda each: PARTS.index(each.part)):
            spoiled = kind.apply(dice, sent)
            if spoiled is not None:
                sent = spoiled
                done.append(kind.name)
        if done:
            yield " + ".join(done), sent
            count -= 1


def _part(kind: Kind, sent: Sent) -> str:
    """Presigned, the parts of a signature are in the query, and a change of the one may undo that of the other."""
    return "query" if sent.presigned and kind.part in SIGNATURE_PARTS else kind.part
