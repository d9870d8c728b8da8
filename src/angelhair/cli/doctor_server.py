"""What `doctor` finds about a server: who answers, and whether it would take requests."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

from angelhair import limits
from angelhair.cli.checks import Check, good, unknown, wrong
from angelhair.server.installing import to_install

REACHABLE = "server reachable"
READY = "server ready"
OK_STATUS = 200


def look(url: str, verify: ssl.SSLContext | bool) -> Iterator[Check]:
    try:
        import httpx
    except ModuleNotFoundError:
        yield unknown(REACHABLE, f"httpx is not installed, which speaks to servers; {to_install()}")
        return
    from angelhair.client.transport import broken

    with httpx.Client(base_url=url, verify=verify, timeout=limits.DOCTOR_PATIENCE_SECONDS) as http:
        try:
            about = http.get("/")
            ready = http.get("/health/ready")
        except httpx.RequestError as error:
            yield wrong(REACHABLE, f"{broken(error).reason}; --no-server looks at a store only")
            return
    who = _json(about)
    if who.get("name") != "angelhair":
        yield wrong(REACHABLE, f"something answers at {url} ({about.status_code}), and it is not Angelhair")
        return
    yield good(REACHABLE, f"angelhair {who.get('version')} at {url}")
    if ready.status_code == OK_STATUS:
        yield good(READY, "it takes requests, and its store answers")
    else:
        yield wrong(READY, str(_json(ready).get("message") or f"it answers {ready.status_code}"))


def _json(response: Any) -> dict[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
