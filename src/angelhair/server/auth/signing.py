"""From a secret to a signature. Making the day's key takes four HMACs, so it is kept."""

from __future__ import annotations

from hashlib import sha256
from hmac import digest

from angelhair import limits
from angelhair.server.auth.access_keys import AccessKey
from angelhair.server.auth.claims import ALGORITHM, TERMINATOR

Scope = tuple[str, bytes, str, str, str]


class SigningKeys:
    """The signing keys that signatures were found right with, the oldest of them dropped when there are too many.

    Only right signatures add to it: who has no secret cannot push out what others use. A secret that is changed is
    another entry; the old one is never asked for again.
    """

    def __init__(self) -> None:
        self._kept: dict[Scope, bytes] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, scope: Scope) -> bytes | None:
        return self._kept.get(scope)

    def keep(self, scope: Scope, signing_key: bytes) -> None:
        while len(self._kept) >= max(1, limits.SIGNING_KEYS):
            del self._kept[next(iter(self._kept))]
        self._kept[scope] = signing_key


def scope_of(key: AccessKey, date: str, region: str, service: str) -> Scope:
    return key.id, key.secret_digest, date, region, service


def signing_key(secret: str, date: str, region: str, service: str) -> bytes:
    made = f"AWS4{secret}".encode()
    for part in (date, region, service, TERMINATOR):
        made = digest(made, part.encode(), "sha256")
    return made


def signature(made_key: bytes, stamp: str, date: str, region: str, service: str, canonical: bytes) -> str:
    hashed = sha256(canonical).hexdigest()
    to_sign = f"{ALGORITHM}\n{stamp}\n{date}/{region}/{service}/{TERMINATOR}\n{hashed}"
    return digest(made_key, to_sign.encode(), "sha256").hex()
