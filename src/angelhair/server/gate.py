"""The gate that every request passes: who asks, and may they.

Doors ask it twice. `admit` says who sent a request, by its signature; then, when the door knows what is wanted, it
asks whether the key is for that (`check_key`), and what the policy of a queue or topic says (`check_policy`). Without
any access key everybody is let in, as the default account.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hmac import compare_digest

from angelhair.clock import Clock
from angelhair.engine.catalog import Queue
from angelhair.engine.topics.values import Topic
from angelhair.server.audit import BASIC, Audit, claimed_key
from angelhair.server.auth import AccessKey, Refused, SigningKeys, allowed, normal_path, not_allowed, verify
from angelhair.server.auth.access_keys import PREFIX
from angelhair.server.auth.actions import ONLY_OF_THE_OWNER, RESCUING, permission
from angelhair.server.auth.policies import Verdict, Wish, judge
from angelhair.server.auth.refusals import missing, unknown_key, wrong_signature
from angelhair.server.http.messages import Request
from angelhair.server.keyring import Keyring
from angelhair.settings import ACCOUNT, REGION

POLICY = "Policy"
"""Among the notes of a queue below `sqs`, of a topic below `sns`: an attribute of theirs, and every door's business."""

NOTHING_MORE: Mapping[str, str] = {}

_REGION = re.compile(r"/[0-9]{8}/([a-z0-9-]{1,64})/[a-z0-9-]{1,64}/aws4_request")
_UNKNOWN_KEY = "InvalidClientTokenId"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request."""

    account: str
    key: AccessKey | None = None
    """None where nobody has to sign."""
    region: str = REGION
    """What the caller calls the place where we are."""

    @property
    def id(self) -> str:
        """What receivers are told of a message's sender."""
        return self.account if self.key is None else self.key.id

    @property
    def arn(self) -> str:
        if self.key is None:
            return f"arn:aws:iam::{self.account}:root"
        return f"arn:aws:iam::{self.account}:user/{self.key.id}"


class Gate:
    def __init__(self, keyring: Keyring, clock: Clock, audit: Audit) -> None:
        self._keyring = keyring
        self._clock = clock
        self._signing_keys = SigningKeys()
        self.audit = audit

    @property
    def enforced(self) -> bool:
        """Whether requests have to be signed."""
        return self._keyring.enforced

    # --- who asks ---------------------------------------------------------------------------------------------------

    async def admit(self, request: Request, services: AbstractSet[str], action: str) -> Caller:
        """By a signature for one of these services. Raises `Refused`."""
        if await self._is_open(request):
            return Caller(ACCOUNT, region=_region_of(request))
        try:
            return await self._signed(request, services)
        except Refused as refused:
            self.audit.refused(request, action, refused.code)
            raise

    async def admit_plainly(self, request: Request, services: AbstractSet[str], action: str) -> Caller:
        """As `admit`; or by the id and the secret of a key, as HTTP's Basic authentication has them."""
        if await self._is_open(request):
            return Caller(ACCOUNT)
        authorization = request.headers.get("authorization", "")
        try:
            if authorization[: len(BASIC)].lower() == BASIC:
                return await self._known(request, authorization[len(BASIC) :])
            if normal_path(request.path) != request.path:
                # Its signature would be good for another path too, which a door reads otherwise.
                raise wrong_signature()
            return await self._signed(request, services)
        except Refused as refused:
            self.audit.refused(request, action, refused.code)
            raise

    async def _is_open(self, request: Request) -> bool:
        """Whoever has made the first key, and uses it at once, is not taken for somebody without one."""
        if not self._keyring.enforced:
            authorization = request.headers.get("authorization", "")
            if f"={PREFIX}" in authorization or authorization[: len(BASIC)].lower() == BASIC:
                await self._keyring.glance()
        return not self._keyring.enforced

    async def _signed(self, request: Request, services: AbstractSet[str]) -> Caller:
        try:
            return self._verified(request, services)
        except Refused as refused:
            claimed = claimed_key(request) if refused.code == _UNKNOWN_KEY else None
            if claimed is None or self._keyring.find(claimed) is not None:
                raise
            if await self._keyring.look_for(claimed) is None:
                raise
        return self._verified(request, services)

    def _verified(self, request: Request, services: AbstractSet[str]) -> Caller:
        now_seconds = self._clock.now().wall_ms / 1000
        identity = verify(request, self._keyring.find, now_seconds, services, self._signing_keys)
        return self._named(request, Caller(identity.account, identity.key, identity.region))

    async def _known(self, request: Request, encoded: str) -> Caller:
        try:
            key_id, _, secret = b64decode(encoded.strip(), validate=True).decode().partition(":")
        except ValueError:
            raise missing() from None
        key = self._keyring.find(key_id) or await self._keyring.look_for(key_id)
        if key is None or not compare_digest(key.secret.encode(), secret.encode()) or not key.enabled:
            raise unknown_key(key_id)
        return self._named(request, Caller(key.account, key))

    def _named(self, request: Request, caller: Caller) -> Caller:
        request.account = caller.account
        request.key = None if caller.key is None else caller.key.id
        return caller

    # --- may they ---------------------------------------------------------------------------------------------------

    def check_key(self, caller: Caller, request: Request, action: str, names: Iterable[str | None]) -> None:
        """Whether the key is for this action with queues or topics of these names; None is all of them."""
        if caller.key is None:
            return
        for name in names:
            if not allowed(caller.key, permission(action), name):
                raise self._denied(caller, request, action)

    def check_policy(
        self, caller: Caller, request: Request, action: str, owner: str, arn: str, policy: str | None,
        service: str = "sqs", circumstances: Mapping[str, str] = NOTHING_MORE,
    ) -> None:
        """Whether the policy of what `owner` has lets the caller do this: another account only if it says so, the
        owner's own unless it denies. `circumstances`: what its conditions may be about, beyond what every request has.
        """
        if caller.key is None:
            return
        is_owner = owner == caller.account
        if not is_owner and action in ONLY_OF_THE_OWNER:
            raise self._denied(caller, request, action)
        if policy is None:
            if not is_owner:
                raise self._denied(caller, request, action)
            return
        wish = Wish(
            caller.account, caller.arn, f"{service}:{permission(action)}", arn,
            {**self._circumstances(caller, request), **circumstances},
        )
        verdict = judge(policy, wish)
        if verdict is Verdict.ALLOWED or (is_owner and verdict is Verdict.SILENT):
            return
        unlimited = caller.key.queues is None and caller.key.actions is None
        if not (is_owner and unlimited and action in RESCUING):
            raise self._denied(caller, request, action)

    def _denied(self, caller: Caller, request: Request, action: str) -> Refused:
        refused = not_allowed(caller.account, caller.id, action)
        self.audit.refused(request, action, refused.code)
        return refused

    def _circumstances(self, caller: Caller, request: Request) -> dict[str, str]:
        return {
            "aws:sourceip": request.peer,
            "aws:securetransport": "true" if request.secure else "false",
            "aws:currenttime": f"{self._clock.now().wall_ms / 1000:.3f}",
            "aws:principalaccount": caller.account,
            "aws:principalarn": caller.arn,
            "aws:useragent": request.headers.get("user-agent", ""),
        }


def policy_of(owned: Queue | Topic) -> str | None:
    """The policy of a queue or a topic, as it was set."""
    attributes = owned.notes.get("sns" if isinstance(owned, Topic) else "sqs")
    policy = attributes.get(POLICY) if isinstance(attributes, dict) else None
    return policy if isinstance(policy, str) else None


def _region_of(request: Request) -> str:
    """Where the client thinks that we are: it says so in its signature, be that right or wrong."""
    found = _REGION.search(request.headers.get("authorization") or request.query)
    return REGION if found is None else found[1]
