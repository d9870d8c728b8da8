"""Kinds of mutation of what is signed: method, path, query, headers, body."""

from __future__ import annotations

from hashlib import sha256
from random import Random

from tests.wire.signing.mutating import Sent, changed, kind, letters_of, parameters_of, part, query_of


@kind("method")
def method_changed(dice: Random, sent: Sent) -> Sent | None:
    others = [method for method in ("GET", "POST", "PUT", "DELETE") if method != sent.request.method]
    return sent.with_(method=dice.choice(others))


@kind("method")
def method_in_lower_case(_: Random, sent: Sent) -> Sent | None:
    return sent.with_(method=sent.request.method.lower())


@kind("method")
def method_with_a_line_end(_: Random, sent: Sent) -> Sent | None:
    return sent.with_(method=f"{sent.request.method}\n/")


# --- path -----------------------------------------------------------------------------------------------------------


@kind("path")
def path_segment_added(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_(path=sent.request.path.rstrip("/") + dice.choice(["/x", "/%2e%2e", "/..%2f", "/%00", "/;"]))


@kind("path")
def path_letter_changed(dice: Random, sent: Sent) -> Sent | None:
    if sent.request.path == "/":
        return None
    return sent.with_(path=changed(dice, sent.request.path))


@kind("path")
def path_letter_escaped(dice: Random, sent: Sent) -> Sent | None:
    """The path itself is signed, as it was sent, and not what it decodes to."""
    path = sent.request.path
    if not (letters := letters_of(path)):
        return None
    index = dice.choice(letters)
    return sent.with_(path=f"{path[:index]}%{ord(path[index]):02X}{path[index + 1 :]}")


@kind("path")
def path_slash_at_the_end_moved(_: Random, sent: Sent) -> Sent | None:
    path = sent.request.path
    if path == "/":
        return None
    return sent.with_(path=path[:-1] if path.endswith("/") else f"{path}/")


@kind("path")
def path_slash_escaped(_: Random, sent: Sent) -> Sent | None:
    head, slash, tail = sent.request.path.rstrip("/")[1:].partition("/")
    return sent.with_(path=f"/{head}%2F{tail}") if slash else None


@kind("path")
def path_climbs_out(_: Random, sent: Sent) -> Sent | None:
    """To another place; dots that lead back to the same one are the same path to both sides."""
    return None if sent.request.path == "/" else sent.with_(path="/222222222222/../333333333333/orders")


@kind("path")
def path_with_a_look_alike(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_(path=sent.request.path + dice.choice(["\xa0", "\xad", "\xc3\xb3", "\uff0f", "\u2215x"]))


# --- query ----------------------------------------------------------------------------------------------------------


def _ordinary(sent: Sent) -> list[int]:
    """Where the parameters are that say nothing about the signature."""
    parameters = parameters_of(sent.request.query)
    return [index for index, (name, _) in enumerate(parameters) if not name.startswith("X-Amz-")]


def _replaced(sent: Sent, index: int, *instead: tuple[str, str]) -> Sent:
    parameters = parameters_of(sent.request.query)
    parameters[index : index + 1] = instead
    return sent.with_(query=query_of(parameters))


@kind("query")
def query_value_changed(dice: Random, sent: Sent) -> Sent | None:
    if not (places := _ordinary(sent)):
        return None
    index = dice.choice(places)
    name, value = parameters_of(sent.request.query)[index]
    return _replaced(sent, index, (name, changed(dice, value)))


@kind("query")
def query_name_changed(dice: Random, sent: Sent) -> Sent | None:
    if not (places := _ordinary(sent)):
        return None
    index = dice.choice(places)
    name, value = parameters_of(sent.request.query)[index]
    return _replaced(sent, index, (dice.choice([name.swapcase(), f"{name}.1", f"{name}%00"]), value))


@kind("query")
def query_value_emptied(dice: Random, sent: Sent) -> Sent | None:
    if not (places := _ordinary(sent)):
        return None
    index = dice.choice(places)
    return _replaced(sent, index, (parameters_of(sent.request.query)[index][0], ""))


@kind("query")
def query_values_exchanged(dice: Random, sent: Sent) -> Sent | None:
    if not (places := _ordinary(sent)):
        return None
    one, other = dice.sample(places, 2)
    parameters = parameters_of(sent.request.query)
    parameters[one], parameters[other] = (
        (parameters[one][0], parameters[other][1]), (parameters[other][0], parameters[one][1]),
    )
    return sent.with_(query=query_of(parameters))


@kind("query")
def query_parameter_added(dice: Random, sent: Sent) -> Sent | None:
    new = dice.choice(["DelaySeconds=900", "a", "=", "%00=1", "action=PurgeQueue", "X-Amz-Meta=1"])
    return sent.with_(query=f"{sent.request.query}&{new}" if sent.request.query else new)


@kind("query")
def query_parameter_removed(dice: Random, sent: Sent) -> Sent | None:
    return _replaced(sent, dice.choice(places)) if (places := _ordinary(sent)) else None


@kind("query")
def query_parameter_repeated(dice: Random, sent: Sent) -> Sent | None:
    if not sent.request.query:
        return None
    parameters = parameters_of(sent.request.query)
    parameters.insert(dice.randint(0, len(parameters)), dice.choice(parameters))
    return sent.with_(query=query_of(parameters))


@kind("query")
def query_parameter_repeated_with_another_value(dice: Random, sent: Sent) -> Sent | None:
    if not sent.request.query:
        return None
    parameters = parameters_of(sent.request.query)
    name, value = dice.choice(parameters)
    parameters.insert(dice.randint(0, len(parameters)), (name, changed(dice, value)))
    return sent.with_(query=query_of(parameters))


@kind("query")
def query_plus_sign_unescaped(_: Random, sent: Sent) -> Sent | None:
    """%2B is a plus sign, and + a space."""
    return sent.with_(query=sent.request.query.replace("%2B", "+")) if "%2B" in sent.request.query else None


@kind("query")
def query_escaped_twice(_: Random, sent: Sent) -> Sent | None:
    return sent.with_(query=sent.request.query.replace("%", "%25")) if "%" in sent.request.query else None


@kind("query")
def query_with_a_broken_escape(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_(query=sent.request.query + dice.choice(["%", "%2", "%zz", "%u0041", "%-1"]))


@kind("query")
def query_with_a_look_alike(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_(query=sent.request.query + dice.choice(["\xa0", "\xad", "\uff21", "&\u0430=1", "\uff06a=1"]))


# --- headers --------------------------------------------------------------------------------------------------------


def _signed(sent: Sent) -> list[str]:
    """Without the date, which is a part of its own."""
    return [name for name in part(sent, "SignedHeaders").split(";") if name != "x-amz-date"]


def _some(dice: Random, sent: Sent) -> tuple[str, str]:
    name = dice.choice(_signed(sent))
    return name, sent.request.headers[name]


@kind("header")
def header_letter_changed(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    return sent.with_header(name, changed(dice, value))


@kind("header")
def header_bit_flipped(dice: Random, sent: Sent) -> Sent | None:
    """The lowest bit of a byte that is no white space, and becomes none."""
    name, value = _some(dice, sent)
    index = dice.choice([index for index, character in enumerate(value) if character > "!"])
    return sent.with_header(name, value[:index] + chr(ord(value[index]) ^ 1) + value[index + 1 :])


@kind("header")
def header_in_the_other_case(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    return sent.with_header(name, value.swapcase()) if value.swapcase() != value else None


@kind("header")
def header_removed(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_header(_some(dice, sent)[0], None)


@kind("header")
def header_emptied(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_header(_some(dice, sent)[0], "")


@kind("header")
def header_repeated(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    return sent.with_header(name, dice.choice([f"{value},{value}", f"{value}, other", f"other,{value}", f"{value},"]))


@kind("header")
def header_with_a_space_inside(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    places = [index for index in range(1, len(value)) if " " not in value[index - 1 : index + 1]]
    index = dice.choice(places)
    return sent.with_header(name, value[:index] + dice.choice([" ", "\t", "  ", "\n"]) + value[index:])


@kind("header")
def header_with_a_line_injected(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    injected = dice.choice(["\r\nx-amz-meta:1", "\nhost:other", "\n\nhost\n", "\x00", "\r"]) + "x"
    return sent.with_header(name, value + injected)


@kind("header")
def header_with_a_look_alike(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    return sent.with_header(name, value + dice.choice(["\xa0", "\x85", "\xad", "\u0430", "\u200b", "\x1c"]))


@kind("header")
def header_that_is_signed_takes_a_similar_name(dice: Random, sent: Sent) -> Sent | None:
    name, value = _some(dice, sent)
    similar = dice.choice([f"{name} ", f"{name}\u200b", name[:-1] + "\u0430"])
    return sent.with_header(name, None).with_header(similar, value)


@kind("unsigned header")
def amazon_header_added(dice: Random, sent: Sent) -> Sent | None:
    new = ["x-amz-meta-new", "x-amz-user-agent", "x-amz-", "x-amz-expires", "x-amz-signature"]
    return sent.with_header(dice.choice(new), "1")


@kind("unsigned header")
def target_added(_: Random, sent: Sent) -> Sent | None:
    if "x-amz-target" in sent.request.headers:
        return None
    return sent.with_header("x-amz-target", "AmazonSQS.PurgeQueue")


@kind("unsigned header")
def session_token_added(_: Random, sent: Sent) -> Sent | None:
    return sent.with_header("x-amz-security-token", "token")


@kind("unsigned header")
def second_date_added(_: Random, sent: Sent) -> Sent | None:
    return sent.with_header("x-amz-date", part(sent, "Date")) if sent.presigned else None


# --- body -----------------------------------------------------------------------------------------------------------


@kind("body")
def body_bit_flipped(dice: Random, sent: Sent) -> Sent | None:
    body = bytearray(sent.request.body)
    if not body:
        return None
    body[dice.randrange(len(body))] ^= 1 << dice.randrange(8)
    return sent.with_(body=bytes(body))


@kind("body")
def body_longer(dice: Random, sent: Sent) -> Sent | None:
    more = dice.choice([b"\x00", b"\n", b" ", b"&Action=PurgeQueue", b"x" * 1_000])
    return sent.with_(body=dice.choice([sent.request.body + more, more + sent.request.body]))


@kind("body")
def body_cut(dice: Random, sent: Sent) -> Sent | None:
    return sent.with_(body=sent.request.body[: dice.randrange(len(sent.request.body))]) if sent.request.body else None


@kind("body hash")
def hash_of_another_body(_: Random, sent: Sent) -> Sent | None:
    return sent.with_header("x-amz-content-sha256", sha256(sent.request.body + b"x").hexdigest())


@kind("body hash")
def hash_left_out(_: Random, sent: Sent) -> Sent | None:
    has = "x-amz-content-sha256" in sent.request.headers
    return sent.with_header("x-amz-content-sha256", None) if has else None


@kind("body hash")
def hash_said_not_to_be_signed(dice: Random, sent: Sent) -> Sent | None:
    values = ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", ""]
    return sent.with_header("x-amz-content-sha256", dice.choice(values))


@kind("body hash")
def hash_in_upper_case(_: Random, sent: Sent) -> Sent | None:
    return sent.with_header("x-amz-content-sha256", sha256(sent.request.body).hexdigest().upper())
