"""The certificate that a server shows, or one line that says what is wrong with it and which setting it is."""

from __future__ import annotations

import ssl
from pathlib import Path

from angelhair.errors import InvalidRequest
from angelhair.settings import Settings

CERTIFICATE_MARK = b"-----BEGIN CERTIFICATE-----"
KEY_MARK = b"PRIVATE KEY-----"
"""How PEM says what follows; before a key its kind may stand."""


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """None without a certificate. Raises `InvalidRequest`."""
    if settings.tls_certificate is None:
        return None
    certificate = settings.tls_certificate
    key_setting = "tls_certificate" if settings.tls_key is None else "tls_key"
    key = settings.tls_key or certificate
    if CERTIFICATE_MARK not in _content("tls_certificate", certificate):
        raise InvalidRequest("tls_certificate", f"{certificate} has no certificate in it; PEM is wanted")
    if KEY_MARK not in _content(key_setting, key):
        hint = "; if the key is in a file of its own, tls_key names it" if settings.tls_key is None else ""
        raise InvalidRequest(key_setting, f"{key} has no private key in it; PEM is wanted{hint}")
    asked = False

    def password() -> str:
        # Without this, OpenSSL would ask at the terminal and wait.
        nonlocal asked
        asked = True
        return ""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, settings.tls_key, password)
    except OSError as error:
        if asked:
            wrong = f"the key in {key} is locked with a password, and nobody is there to type it"
            raise InvalidRequest(key_setting, wrong) from error
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            wrong = f"the key in {key} is not that of the certificate in {certificate}"
            raise InvalidRequest(key_setting, wrong) from error
        reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        files = certificate if key == certificate else f"{certificate} with {key}"
        # Of damaged PEM OpenSSL gives no reason.
        raise InvalidRequest("tls_certificate", f"{files} cannot be used: {reason or 'damaged PEM'}") from error
    return context


def _content(setting: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidRequest(setting, f"{file} cannot be read: {error.strerror}") from error
