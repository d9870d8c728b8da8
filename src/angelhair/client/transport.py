"""What the two drivers have in common about httpx: how its clients are made, and what its errors mean."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from angelhair import limits
from angelhair.client.plans import Answer, Broken, Request, Send
from angelhair.errors import InvalidRequest

DEFAULT_URL = "http://127.0.0.1:9324"
"""Where `angelhair serve` listens unless told otherwise."""

KEY_ID_VARIABLE, SECRET_VARIABLE = "ANGELHAIR_KEY_ID", "ANGELHAIR_SECRET"
"""Where an access key is looked for that nobody has named."""

NOTHING_SENT = (
    httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol,
)
"""Raised before the first byte of a request has left."""

LEFT_ALONE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)
"""How the end of a connection without an answer is told, by how much of the request the server had read then."""

RUNNING_HINT = "; is a server running there? `angelhair serve` starts one"
TRUST_HINT = "; name the authority to trust, by SSL_CERT_FILE, the command's --ca or the client's verify="


class Address:
    """Where the server is and how to get there: all that it takes to make another connection like this one."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None, verify: ssl.SSLContext | bool, key_id: str | None = None,
        secret: str | None = None,
    ) -> None:
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as error:
            raise InvalidRequest("url", str(error)) from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            # Later it would look like a server that is away, and be tried again and again.
            raise InvalidRequest("url", f"{url!r} is not an address such as {DEFAULT_URL}")
        self._url = parsed
        self._auth = _access_key(key_id, secret)
        self._headers = {"user-agent": "angelhair-python", **(headers or {})}
        # Reading certificates takes longer than a hundred requests: once for all connections.
        self._tls = verify if isinstance(verify, ssl.SSLContext) else httpx.create_ssl_context(verify)

    def options(self) -> dict[str, Any]:
        """For httpx.Client and httpx.AsyncClient alike."""
        return {
            "base_url": self._url,
            "headers": self._headers,
            **({} if self._auth is None else {"auth": self._auth}),
            "verify": self._tls,
            "limits": httpx.Limits(
                max_connections=1, max_keepalive_connections=1, keepalive_expiry=limits.CLIENT_IDLE_SECONDS
            ),
        }


def _access_key(key_id: str | None, secret: str | None) -> httpx.BasicAuth | None:
    """What was said, or else the environment's; None when neither has a key."""
    if (key_id is None) is not (secret is None):
        raise InvalidRequest("secret" if secret is None else "key_id", "is missing; an access key has both")
    if key_id is None or secret is None:
        key_id, secret = os.environ.get(KEY_ID_VARIABLE), os.environ.get(SECRET_VARIABLE)
        if bool(key_id) is not bool(secret):
            there, missing = (SECRET_VARIABLE, KEY_ID_VARIABLE) if secret else (KEY_ID_VARIABLE, SECRET_VARIABLE)
            raise InvalidRequest(
                "key_id" if secret else "secret", f"{there} is set and {missing} is not: an access key is both"
            )
    return httpx.BasicAuth(key_id, secret) if key_id and secret else None


def arguments(step: Send) -> dict[str, Any]:
    """A request as httpx takes it."""
    request: Request = step.request
    headers = {} if request.content_type is None else {"content-type": request.content_type}
    return {
        "method": request.method,
        "url": request.path,
        "params": request.query or None,
        "content": request.body,
        "headers": headers,
        "timeout": httpx.Timeout(step.timeout_seconds, read=step.timeout_seconds + step.wait_seconds),
    }


def answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.headers, response.content)


def broken(error: httpx.RequestError) -> Broken:
    """Whatever is not known to have stayed here may have arrived."""
    url = error.request.url
    where = f"{url.scheme}://{url.netloc.decode()}"
    untrusted = _certificate_trouble(error)
    if untrusted is not None:
        return Broken(f"{where}: its certificate is not trusted: {untrusted}{TRUST_HINT}", sent=False, for_good=True)
    said = f"{type(error).__name__}: {error}".rstrip(": .")
    return Broken(f"{where}: {said}{_hint(error, url.scheme)}", sent=not isinstance(error, NOTHING_SENT))


def _certificate_trouble(error: BaseException) -> str | None:
    """What is wrong with the server's certificate, if that is what it was. It will be as wrong a second later."""
    for found in _behind(error):
        if isinstance(found, ssl.SSLCertVerificationError):
            return found.verify_message
    return None


def _hint(error: httpx.RequestError, scheme: str) -> str:
    """What may be the matter, where the library's own words leave people guessing."""
    if any(isinstance(found, ConnectionRefusedError) for found in _behind(error)):
        return RUNNING_HINT
    if scheme == "https" and any(isinstance(found, ssl.SSLError) for found in _behind(error)):
        return "; does this server speak https, or plain http?"
    if scheme == "http" and isinstance(error, LEFT_ALONE):
        # It has ended, most often; who speaks plainly to a server that encrypts is left without a word as well.
        return "; was it stopped just then, or does this server speak https?"
    return ""


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it was raised for."""
    found: BaseException | None = error
    while found is not None:
        yield found
        # The HTTP library hands an error on by raising another, sometimes with a cause and sometimes beside it.
        found = found.__cause__ or found.__context__
