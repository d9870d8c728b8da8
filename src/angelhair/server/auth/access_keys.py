"""Access keys: whose they are, what they are limited to, and how new ones are made."""

from __future__ import annotations

import re
from base64 import b32encode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from angelhair.server.auth.wildcards import matches

PREFIX = "AHKI"
"""Tells our ids from Amazon's, which have the same length: who finds one in a log knows where it belongs."""

ID_RANDOM_BYTES = 10
"""Sixteen characters of base32."""

SECRET_RANDOM_BYTES = 30
"""Forty characters of base64, as Amazon's."""

_ID = re.compile(f"{PREFIX}[A-Z2-7]{{16}}")

EVERYTHING = "*"


@dataclass(frozen=True, slots=True)
class AccessKey:
    """An id that is sent, and a secret that is not, and that no `repr` and so no log shows."""

    id: str
    secret: str = field(repr=False, compare=False)
    account: str
    enabled: bool = True
    queues: tuple[str, ...] | None = None
    """Patterns of the names of the queues that it may be used for, in which `*` stands for any text; None for all."""
    actions: tuple[str, ...] | None = None
    """Names of the actions that it may be used for, or `*`; None for all."""
    secret_digest: bytes = field(init=False, repr=False)
    """Tells two secrets of one id apart, where the secret itself need not be kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "secret_digest", sha256(self.secret.encode()).digest())


def allowed(key: AccessKey, action: str, queue: str | None) -> bool:
    """Whether a key may do this. An action about no one queue (None), such as listing them, is about all of them."""
    if not key.enabled:
        return False
    if key.actions is not None and action not in key.actions and EVERYTHING not in key.actions:
        return False
    if key.queues is None:
        return True
    if queue is None:
        return EVERYTHING in key.queues
    return any(matches(pattern, queue) for pattern in key.queues)


def has_form_of_id(text: str) -> bool:
    """Whether this is an id and cannot be a secret that was sent in its place: it may be shown."""
    return _ID.fullmatch(text) is not None


def new_id(random_bytes: Callable[[int], bytes]) -> str:
    """Twenty upper-case letters and digits; `random_bytes` is `secrets.token_bytes`, or a test's."""
    return PREFIX + b32encode(random_bytes(ID_RANDOM_BYTES)).decode()


def new_secret(random_bytes: Callable[[int], bytes]) -> str:
    """Forty characters with 240 bits in them."""
    return b64encode(random_bytes(SECRET_RANDOM_BYTES)).decode()
