"""The audit log: a line for every request that was refused, and for every one that administers, by whom.

Lines are written by the logger `angelhair.audit`, where all others of a server go: refusals as warnings, the rest as
information. Who has no key can make a server refuse without end; so only so many refusals are written in a while, and
of the others their number. What a key administers is always written.
"""

from __future__ import annotations

import logging
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from angelhair import limits
from angelhair.server.auth.access_keys import has_form_of_id
from angelhair.server.http.messages import Request

if TYPE_CHECKING:
    from angelhair.server.auth import AccessKey

_audit = logging.getLogger("angelhair.audit")
"""By a name that people can set levels for; where the file lies is nobody's business."""

DONE = "done"
"""How something ended that was not refused."""

_ACTION_LENGTH = 80
"""Of an action as it is written: a client may have made it up."""

BASIC = "basic "
"""How HTTP's Basic authentication begins, in lower case."""

_CLAIMED = re.compile(r"(?:Credential=|X-Amz-Credential=)([A-Za-z0-9_-]{1,128})(?:/|%2[Ff])")


class Audit:
    def __init__(self) -> None:
        self._began = monotonic()
        self._written = 0
        self._left_out = 0

    def refused(self, request: Request, action: str, code: str) -> None:
        """The key is the one that the request names, be it its own or not."""
        if not self._has_room():
            return
        _audit.warning(
            "refused %s: %s", action[:_ACTION_LENGTH] or "(no action)", code,
            extra={"event": "refused", "code": code, "key": request.key or claimed_key(request)}
            | _about(request, action),
        )

    def administered(self, request: Request, action: str, outcome: str) -> None:
        """`outcome`: `DONE`, or the code of what was answered instead. Without keys nobody could say who it was."""
        if request.key is None:
            return
        _audit.info(
            "%s: %s", action, outcome,
            extra={"event": "administered", "outcome": outcome, "key": request.key} | _about(request, action),
        )

    @contextmanager
    def administering(
        self, request: Request, action: str, refused: tuple[type[Exception], ...], code_of: Callable[[Exception], str]
    ) -> Iterator[None]:
        """Writes how it ended, what is done in here; `refused` are the errors that a door answers."""
        try:
            yield
        except refused as error:
            self.administered(request, action, code_of(error))
            raise
        self.administered(request, action, DONE)

    def key_changed(self, key: AccessKey, change: str) -> None:
        _audit.info(
            "access key %s %s", key.id, change,
            extra={"event": "key", "change": change, "key": key.id, "account": key.account},
        )

    def _has_room(self) -> bool:
        now = monotonic()
        if now - self._began >= limits.AUDIT_SECONDS:
            left_out = self._left_out
            self._began, self._written, self._left_out = now, 0, 0
            if left_out:
                _audit.warning(
                    "%d more requests were refused, and not written one by one", left_out,
                    extra={"event": "refusals left out", "count": left_out},
                )
        if self._written >= limits.AUDIT_REFUSALS:
            self._left_out += 1
            return False
        self._written += 1
        return True


def claimed_key(request: Request) -> str | None:
    """The key that a request says it is from; None when it says none, or something that is no id."""
    authorization = request.headers.get("authorization", "")
    if authorization[: len(BASIC)].lower() == BASIC:
        return _user(authorization[len(BASIC) :])
    found = _CLAIMED.search(authorization or request.query)
    return None if found is None else found[1]


def _user(encoded: str) -> str | None:
    """What stands where the id belongs; some put the secret there, and no log may have that."""
    try:
        user = b64decode(encoded.strip(), validate=True).decode().partition(":")[0]
    except ValueError:
        return None
    return user if has_form_of_id(user) else None


def _about(request: Request, action: str) -> dict[str, object]:
    return {"action": action[:_ACTION_LENGTH], "queue": request.queue, "account": request.account, "peer": request.peer}
