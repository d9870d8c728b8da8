"""Kinds of mutation of what a signature says of itself: algorithm, credential, scope, times, list, value; its form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.wire.signing.mutating import Sent, changed, edit, kind, other_key, parameters_of, part, parts_of, query_of
from tests.wire.signing.signers import GONE, NOW

DAY_SECONDS = 86_400


@kind("algorithm")
def algorithm_changed(dice: Random, sent: Sent) -> Sent | None:
    others = ["aws4-hmac-sha256", "AWS4-HMAC-SHA1", "AWS4-ECDSA-P256-SHA256", "Bearer", "none", "AWS4\u2010HMAC-SHA256"]
    return edit(sent, "Algorithm", dice.choice(others))


@kind("algorithm")
def algorithm_removed(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Algorithm", None)


# --- credential and scope -------------------------------------------------------------------------------------------


def _scope(sent: Sent, place: int, change: Callable[[str], str]) -> Sent | None:
    scope = part(sent, "Credential").split("/")
    scope[place] = change(scope[place])
    return edit(sent, "Credential", "/".join(scope))


@kind("credential")
def key_of_somebody_else(_: Random, sent: Sent) -> Sent | None:
    return _scope(sent, 0, other_key)


@kind("credential")
def key_that_is_unknown(dice: Random, sent: Sent) -> Sent | None:
    others: list[Callable[[str], str]] = [
        lambda key: changed(dice, key), str.lower, lambda key: key + "A", lambda key: key[:-1], lambda _: "",
        lambda _: "x" * 200,
    ]
    return _scope(sent, 0, dice.choice(others))


@kind("credential")
def key_that_is_disabled(_: Random, sent: Sent) -> Sent | None:
    """With the secret that Alice's requests were signed with."""
    return _scope(sent, 0, lambda _: GONE.id)


@kind("credential")
def key_with_a_look_alike(dice: Random, sent: Sent) -> Sent | None:
    others: list[Callable[[str], str]] = [
        lambda key: key.replace("A", "\u0410"), lambda key: key.replace("0", "O"), lambda key: key + "\xa0",
        lambda key: f" {key}",
    ]
    return _scope(sent, 0, dice.choice(others))


@kind("credential")
def scope_of_another_day(dice: Random, sent: Sent) -> Sent | None:
    return _scope(sent, 1, lambda _: dice.choice(["20261115", "20261117", "20251116", "2026-11-16", "", "20261116Z"]))


@kind("credential")
def scope_of_another_region(dice: Random, sent: Sent) -> Sent | None:
    regions = ["eu-west-1", "us-east-2", "", "US-EAST-1", "us_east_1", "us-east-1 ", "x" * 65, "us\u2010east-1", "*"]
    return _scope(sent, 2, lambda _: dice.choice(regions))


@kind("credential")
def scope_of_another_service_of_this_door(_: Random, sent: Sent) -> Sent | None:
    return _scope(sent, 3, lambda service: "sns" if service == "sqs" else "sqs")


@kind("credential")
def scope_of_another_service(dice: Random, sent: Sent) -> Sent | None:
    return _scope(sent, 3, lambda _: dice.choice(["s3", "dynamodb", "", "SQS", "sqs ", "sqs\x00"]))


@kind("credential")
def scope_of_another_terminator(dice: Random, sent: Sent) -> Sent | None:
    return _scope(sent, 4, lambda _: dice.choice(["aws4", "AWS4_REQUEST", "aws5_request", "", "aws4_request x"]))


@kind("credential")
def scope_of_another_length(dice: Random, sent: Sent) -> Sent | None:
    credential = part(sent, "Credential")
    others = [f"{credential}/", f"/{credential}", f"{credential}/x", credential.rpartition("/")[0], "", "////"]
    return edit(sent, "Credential", dice.choice(others))


@kind("credential")
def credential_removed(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Credential", None)


# --- the list of signed headers ---------------------------------------------------------------------------------------


@kind("signed headers")
def signed_header_dropped(dice: Random, sent: Sent) -> Sent | None:
    names = part(sent, "SignedHeaders").split(";")
    names.remove(dice.choice(names))
    return edit(sent, "SignedHeaders", ";".join(names))


@kind("signed headers")
def signed_header_added(dice: Random, sent: Sent) -> Sent | None:
    names = set(part(sent, "SignedHeaders").split(";"))
    new = dice.choice(["absent", "authorization", "user-agent", "zzz", "content-length"])
    return edit(sent, "SignedHeaders", ";".join(sorted(names | {new})))


@kind("signed headers")
def signed_header_repeated(dice: Random, sent: Sent) -> Sent | None:
    names = part(sent, "SignedHeaders").split(";")
    return edit(sent, "SignedHeaders", ";".join(sorted([*names, dice.choice(names)])))


@kind("signed headers")
def signed_headers_unsorted(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "SignedHeaders", ";".join(reversed(part(sent, "SignedHeaders").split(";"))))


@kind("signed headers")
def signed_headers_in_upper_case(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "SignedHeaders", part(sent, "SignedHeaders").title())


@kind("signed headers")
def signed_headers_written_otherwise(dice: Random, sent: Sent) -> Sent | None:
    names = part(sent, "SignedHeaders")
    others = ["", ";", f"{names};", f";{names}", f"{names} x", f"{names}\n", names.replace("o", "\u043e")]
    return edit(sent, "SignedHeaders", dice.choice(others))


@kind("signed headers")
def signed_headers_removed(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "SignedHeaders", None)


# --- the signature itself ---------------------------------------------------------------------------------------------


@kind("signature")
def signature_bit_flipped(dice: Random, sent: Sent) -> Sent | None:
    digits = bytearray.fromhex(part(sent, "Signature"))
    digits[dice.randrange(len(digits))] ^= 1 << dice.randrange(8)
    return edit(sent, "Signature", digits.hex())


@kind("signature")
def signature_in_upper_case(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Signature", part(sent, "Signature").upper())


@kind("signature")
def signature_of_another_length(dice: Random, sent: Sent) -> Sent | None:
    signature = part(sent, "Signature")
    others = [signature[: dice.randrange(64)], signature + "0", f"0{signature}", signature * 2, f"0x{signature}"]
    return edit(sent, "Signature", dice.choice(others))


@kind("signature")
def signature_with_look_alikes(dice: Random, sent: Sent) -> Sent | None:
    signature = part(sent, "Signature")
    alike = {"0": "O", "1": "l", "a": "\u0430", "e": "\u0435", "5": "\uff15", "b": "\uff42", "9": "\u0669"}
    digit = dice.choice([digit for digit in alike if digit in signature])
    return edit(sent, "Signature", signature.replace(digit, alike[digit], 1))


@kind("signature")
def signature_of_nothing(dice: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Signature", dice.choice(["0" * 64, "f" * 64, " " * 64, "\x00" * 64, "null", "*"]))


@kind("signature")
def signature_removed(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Signature", None)


# --- times ------------------------------------------------------------------------------------------------------------


@kind("date")
def date_changed(dice: Random, sent: Sent) -> Sent | None:
    """Still within the window, but for the last two, which are of another day than the scope."""
    stamps = ["20261116T120001Z", "20261116T115959Z", "20261116T121000Z", "20261115T120000Z", "20261117T120000Z"]
    return edit(sent, "Date", dice.choice(stamps))


@kind("date")
def date_written_otherwise(dice: Random, sent: Sent) -> Sent | None:
    stamps = [
        "2026-11-16T12:00:00Z", "20261116T120000", "20261116T120000z", "20261116t120000Z", "20261116T120000+0000", "",
        "20261116T126000Z", "20261316T120000Z", "2026111\uff16T120000Z", "Mon, 16 Nov 2026 12:00:00 GMT", "1794830400",
        "20261116T120000Z,20261116T120000Z",
    ]
    return edit(sent, "Date", dice.choice(stamps))


@kind("date")
def date_removed(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Date", None)


@kind("clock")
def too_late(dice: Random, sent: Sent) -> Sent | None:
    valid = int(part(sent, "Expires")) if sent.presigned else 900
    return replace(sent, now_seconds=NOW + valid + dice.choice([1, 60, DAY_SECONDS, 20 * 365 * DAY_SECONDS]))


@kind("clock")
def too_early(dice: Random, sent: Sent) -> Sent | None:
    return replace(sent, now_seconds=NOW - 900 - dice.choice([1, 60, DAY_SECONDS, 20 * 365 * DAY_SECONDS]))


@kind("expires")
def expires_changed(dice: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Expires", dice.choice(["1", "61", "3601", "604799", "86400"]))


@kind("expires")
def expires_out_of_bounds(dice: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Expires", dice.choice(["0", "-1", "604801", "999999", "99999999999999999999", "1e3", "", "inf"]))


@kind("expires")
def expires_written_otherwise(dice: Random, sent: Sent) -> Sent | None:
    expires = part(sent, "Expires") if sent.presigned else ""
    others = [f"0{expires}", f"+{expires}", f"{expires}.0", f" {expires}", f"{expires}\n", "\u0663"]
    return edit(sent, "Expires", dice.choice(others))


@kind("expires")
def expires_removed(_: Random, sent: Sent) -> Sent | None:
    return edit(sent, "Expires", None)


# --- the form ---------------------------------------------------------------------------------------------------------


@kind("form")
def parameters_in_lower_case(dice: Random, sent: Sent) -> Sent | None:
    if not sent.presigned:
        return None
    parameters = parameters_of(sent.request.query)
    index = dice.choice([index for index, (name, _) in enumerate(parameters) if name.startswith("X-Amz-")])
    parameters[index] = (parameters[index][0].lower(), parameters[index][1])
    return sent.with_(query=query_of(parameters))


@kind("form")
def moved_from_the_query_to_a_header(_: Random, sent: Sent) -> Sent | None:
    if not sent.presigned:
        return None
    parts = [f"{name}={part(sent, name)}" for name in ("Credential", "SignedHeaders", "Signature")]
    rest = [(name, value) for name, value in parameters_of(sent.request.query) if not name.startswith("X-Amz-")]
    moved = sent.with_header("authorization", f"AWS4-HMAC-SHA256 {', '.join(parts)}").with_(query=query_of(rest))
    return moved.with_header("x-amz-date", part(sent, "Date"))


@kind("authorization")
def moved_from_the_header_to_the_query(_: Random, sent: Sent) -> Sent | None:
    """A signature that is good for 15 minutes would be good for a week."""
    if sent.presigned or "x-amz-date" not in sent.request.headers:
        return None
    parts = parts_of(sent.request.headers["authorization"])
    more = [(f"X-Amz-{name}", value) for name, value in parts.items()]
    more += [("X-Amz-Date", sent.request.headers["x-amz-date"]), ("X-Amz-Expires", "604800")]
    return sent.with_header("authorization", None).with_(query=query_of([*parameters_of(sent.request.query), *more]))


@kind("authorization")
def header_and_query_both(_: Random, sent: Sent) -> Sent | None:
    if sent.presigned:
        return sent.with_header("authorization", "AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b")
    return sent.with_(query=f"{sent.request.query}&X-Amz-Signature=0".lstrip("&"))


@kind("authorization")
def header_twice(dice: Random, sent: Sent) -> Sent | None:
    if sent.presigned:
        return None
    one = sent.request.headers["authorization"]
    return sent.with_header("authorization", dice.choice([f"{one},{one}", f"{one}, Signature=0", f"Basic x,{one}"]))


@kind("authorization")
def header_written_otherwise(dice: Random, sent: Sent) -> Sent | None:
    if sent.presigned:
        return None
    one = sent.request.headers["authorization"]
    others = [
        one.replace("Signature=", "signature="), one.replace(", ", "; "), one.replace(", ", " "), one.replace("=", ":"),
        f"{one},", f"{one}, Other=1", f"x{one}", one.replace(" ", "\xa0", 1), one + "\x00", "AWS4-HMAC-SHA256", "", "=",
    ]
    return sent.with_header("authorization", dice.choice(others))


@kind("authorization")
def header_removed_altogether(_: Random, sent: Sent) -> Sent | None:
    return None if sent.presigned else sent.with_header("authorization", None)
