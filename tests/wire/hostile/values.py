"""What nobody should send, by seed: texts, numbers and whole documents, and ways to break a good document."""

from __future__ import annotations

import copy
import random
from typing import Any

TEXTS = (
    "", " ", "\x00", "\x01\x08\x0b\x0c\x1f", "\x7f\x80\x9f", "\ufffe", "\uffff", "\ufeff", "\U0010ffff", "\u202e",
    "é" * 90, "]]>", "<!--", "<![CDATA[", "<?xml version='1.0'?>", "<!DOCTYPE a [<!ENTITY b 'b'>]>", "&b;", "&#0;",
    "&", "<a/>", '"', "'", "\\", "\\u0000", "%", "%00", "%zz", "../../..", "a/b", "?a=b#c", "{queue}", "{0}", "%s%n",
    "\r\n\r\nHTTP/1.1 200 OK", "true", "null", "None", "NaN", "-1", "-0", "+5", "0x10", "1e999", "1_0", "٣", "²",
    "9" * 400, "0" * 400, "999999999999999", "0.5", "[]", "{}", "[[" * 400, '{"a":' * 400,
    '{"maxReceiveCount":[[]]}', '{"maxReceiveCount":"1e9"}', '{"Statement":[{}]}', '{"redrivePermission":{}}',
    '{"deadLetterTargetArn":7,"maxReceiveCount":7}', "All", "*", ".*", "." * 90, "x" * 3_000, "arn:aws:sqs:::",
    "arn:aws:sqs:eu-west-1:000000000000:absent", "http://[::1", "http://x:99999999/1/2", "//", "AWS.", "a.b",
    "String", "Binary", "Number", "String.", "Number." + "x" * 300, "Binary..", "AWSTraceHeader", "=", "====",
    "AA=A", "%ff",
)
"""None of them is a number of seconds that a receive could wait, and none a name that a queue could have by itself."""

NUMBERS = (0, -1, 43_201, 2**31, -(2**31), 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**40, 0.5, -0.0, 1e300, 5e-324)


def text(dice: random.Random) -> str:
    if dice.random() < 0.8:
        return dice.choice(TEXTS)
    # Begins with what no name begins with: a queue for every one of them would be growth that was asked for.
    return dice.choice("<\x00\ud7ff ") + "".join(chr(dice.choice([dice.randrange(0xD800), dice.randrange(128)]))
                                                for _ in range(dice.randrange(60)))


def value(dice: random.Random, depth: int = 2) -> Any:
    kind = dice.randrange(8 if depth else 6)
    if kind < 3:
        return text(dice)
    if kind == 3:
        return dice.choice(NUMBERS)
    if kind == 4:
        return dice.choice([True, False, None])
    if kind == 5:
        return dice.choice([[], {}, [None], {"": None}, [[[[]]]], {"__type": "x"}])
    if kind == 6:
        return [value(dice, depth - 1) for _ in range(dice.choice([1, 1, 2, 11]))]
    return {text(dice): value(dice, depth - 1) for _ in range(dice.choice([1, 1, 2, 11]))}


def broken(document: Any, dice: random.Random) -> Any:
    """A copy with something wrong somewhere, or in several places."""
    document = copy.deepcopy(document)
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        document = _broken_once(document, dice)
    return document


def _broken_once(document: Any, dice: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return value(dice)
    holder, key = dice.choice(places)
    match dice.randrange(7):
        case 0:
            del holder[key]
        case 1:
            holder[key] = [holder[key]]
        case 2:
            holder[key] = {text(dice): holder[key]}
        case 3 if isinstance(holder, dict):
            holder[text(dice)] = holder.pop(key)
        case 4 if isinstance(holder, list):
            holder *= dice.choice([2, 11, 50])
        case 5 if isinstance(holder[key], str):
            at = dice.randrange(len(holder[key]) + 1)
            holder[key] = holder[key][:at] + text(dice) + holder[key][at:]
        case _:
            holder[key] = value(dice)
    return document


def _places(document: Any) -> Any:
    """Every place that holds something: what it is in, and where in that."""
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, key
            yield from _places(document[key])


def scratched(data: bytes, dice: random.Random) -> bytes:
    """Bytes changed, cut off, put in or doubled."""
    at = dice.randrange(len(data) + 1)
    match dice.randrange(5):
        case 0:
            return data[:at]
        case 1:
            piece = dice.choice([b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x00", b"\xef\xbb\xbf"])
            return data[:at] + piece + data[at:]
        case 2:
            return data[:at] + data[:at] + data[at:]
        case 3:
            return data[at:] + dice.randbytes(dice.randrange(30))
        case _:
            scratch = bytearray(data or b"x")
            for _ in range(dice.randint(1, 6)):
                scratch[dice.randrange(len(scratch))] = dice.randrange(256)
            return bytes(scratch)
