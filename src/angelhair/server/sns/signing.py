"""The key that messages are signed with, and its certificate.

It is made once, when the first topic needs it, and kept in the store: all servers of a store sign with the same key, so
that whoever verifies needs one certificate. It lies among the notes of a queue that no door shows: the first who makes
that queue has made the key, and the others find theirs. Whoever can read the store can sign.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from angelhair import limits
from angelhair.engine.engine import Engine
from angelhair.engine.topics.postings import hidden_account
from angelhair.errors import AngelhairError, QueueNotFound
from angelhair.model import QueueSettings
from angelhair.settings import ACCOUNT

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

QUEUE = "sns-signing"
KEY, CERTIFICATE = "key", "certificate"
NAME = "Angelhair message signing"

_FINGERPRINT_DIGITS = 32

_log = logging.getLogger(__name__)


class NotReady(Exception):
    """The key is being read. Who was to sign with it tries again in a moment."""


class Certified(NamedTuple):
    key: RSAPrivateKey
    secret: bytes
    """For tokens that only servers of this store can make."""
    certificate: bytes
    """PEM."""
    path: str
    """Where this server shows the certificate."""


class Signer:
    """To be made inside a running loop."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._account = hidden_account(ACCOUNT)
        self._certified: Certified | None = None
        self._making = asyncio.Lock()
        self._loading: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns when there is a key: what is published or subscribed from now on will be signed."""
        if self._certified is not None:
            return
        async with self._making:
            if self._certified is None and not await self._load():
                await self._make()

    @property
    def certified(self) -> Certified:
        """Raises `NotReady` on a server that has not needed the key so far; it is read meanwhile."""
        if self._certified is None:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.get_running_loop().create_task(self._ready_quietly(), name="signing key")
            raise NotReady("the key that messages are signed with is being read")
        return self._certified

    async def certificate(self, path: str) -> bytes | None:
        """What this server shows at this path, if that is where the certificate is."""
        if self._certified is None:
            await self._load()
        found = self._certified
        return found.certificate if found is not None and found.path == path else None

    async def stop(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def sign(self, text: str, version: str) -> str:
        """RSA with PKCS #1 v1.5 padding, over SHA-1 in version 1 and SHA-256 in version 2."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        # SHA-1 is what version 1 of SNS's signatures is made of; topics choose.
        digest = hashes.SHA256() if version == "2" else hashes.SHA1()
        return b64encode(self.certified.key.sign(text.encode(), padding.PKCS1v15(), digest)).decode()

    def token(self, what: str) -> str:
        """Only a server of this store can make it."""
        return hmac.new(self.certified.secret, what.encode(), sha256).hexdigest()

    # --- where it is kept ---------------------------------------------------------------------------------------------

    async def _ready_quietly(self) -> None:
        try:
            await self.ready()
        except AngelhairError as error:
            _log.warning("the key that messages are signed with cannot be read: %s", error)

    async def _load(self) -> bool:
        try:
            queue = await self._engine.find_queue(self._account, QUEUE)
        except QueueNotFound:
            return False
        self._certified = _read(queue.notes[KEY], queue.notes[CERTIFICATE])
        return True

    async def _make(self) -> None:
        key, certificate = await asyncio.to_thread(_made)
        # Somebody else's, if that one was faster.
        queue, _ = await self._engine.create_queue(
            self._account, QUEUE, QueueSettings(history_ms=0), {KEY: key, CERTIFICATE: certificate}
        )
        self._certified = _read(queue.notes[KEY], queue.notes[CERTIFICATE])


def _made() -> tuple[str, str]:
    """A new key and a certificate that it signs itself, both as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=limits.SNS_KEY_BITS)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of those who verify may be behind ours.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=limits.SNS_CERTIFICATE_DAYS))
        .sign(key, hashes.SHA256())
    )
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return encoded.decode(), certificate.public_bytes(serialization.Encoding.PEM).decode()


def _read(key: str, certificate: str) -> Certified:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private = load_pem_private_key(key.encode(), None)
    assert isinstance(private, RSAPrivateKey), "the key was made by us"
    fingerprint = sha256(certificate.encode()).hexdigest()[:_FINGERPRINT_DIGITS]
    path = f"/SimpleNotificationService-{fingerprint}.pem"
    return Certified(private, sha256(b"tokens" + key.encode()).digest(), certificate.encode(), path)
