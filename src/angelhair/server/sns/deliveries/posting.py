"""One request to an endpoint, and what its answer means."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum
from urllib.parse import urlunsplit

import httpx

from angelhair import limits
from angelhair.server.sns.deliveries.places import Place

SUCCESSES = range(200, 300)
CLIENT_ERRORS = range(400, 500)
TOO_MANY_REQUESTS = 429
AGENT = "Amazon Simple Notification Service Agent"


class Answer(Enum):
    TAKEN = "the endpoint took it"
    REFUSED = "the endpoint will not take it, however often it is asked"
    FAILED = "it may be asked again"


class Poster:
    """To be made inside a running loop."""

    def __init__(self) -> None:
        # A connection is for one request: the next name at the same address must not find it open. No proxy of the
        # environment is asked: it would go where we do not.
        self._client = httpx.AsyncClient(
            limits=httpx.Limits(max_keepalive_connections=0), timeout=limits.SNS_POST_SECONDS, trust_env=False,
            follow_redirects=False,
        )

    async def post(self, place: Place, body: bytes, headers: Mapping[str, str]) -> tuple[Answer, str]:
        """And why, when it was not taken."""
        address = f"[{place.address}]" if ":" in place.address else place.address
        path = urlunsplit(("", "", place.url.path or "/", place.url.query, ""))
        url = f"{place.url.scheme.lower()}://{address}:{place.port}{path}"
        sent = {**headers, "Host": place.url.netloc.rpartition("@")[2], "User-Agent": AGENT}
        credentials = (place.url.username or "", place.url.password or "") if place.url.username else None
        try:
            async with asyncio.timeout(limits.SNS_POST_SECONDS):
                async with self._client.stream(
                    "POST", url, content=body, headers=sent, auth=credentials, extensions={"sni_hostname": place.host}
                ) as response:
                    await _glance(response)
                    return judged(response.status_code)
        except TimeoutError:
            return Answer.FAILED, f"it did not answer within {limits.SNS_POST_SECONDS} seconds"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return Answer.FAILED, f"{type(error).__name__}: {error}"

    async def close(self) -> None:
        await self._client.aclose()


async def _glance(response: httpx.Response) -> None:
    """Reads a little of the answer, so that an endpoint which still writes does not take our leaving for a fault."""
    read_bytes = 0
    async for part in response.aiter_raw():
        read_bytes += len(part)
        if read_bytes >= limits.SNS_ANSWER_BYTES:
            return


def judged(status: int) -> tuple[Answer, str]:
    if status in SUCCESSES:
        return Answer.TAKEN, ""
    if status in CLIENT_ERRORS and status != TOO_MANY_REQUESTS:
        return Answer.REFUSED, f"it answered {status}"
    return Answer.FAILED, f"it answered {status}"
