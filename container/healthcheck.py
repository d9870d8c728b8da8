"""Asks the server in this container whether it is ready; the exit code says so.

It finds the server the way the server found its port: by the environment and the YAML file. Flags it cannot see, so a
port is better given by ANGELHAIR_PORT, or left as it is and mapped.
"""
# ruff: noqa: T201  what it prints is what `docker inspect` shows

import http.client
import os
import ssl
import sys

from angelhair.server.configuration import SettingsRefused, resolve

TIMEOUT_SECONDS = 4.0
"""Below the time-out in the Dockerfile, so that the reason is told."""


def main() -> int:
    try:
        settings = resolve({}, os.environ).settings
    except SettingsRefused as refused:
        print(refused, file=sys.stderr)
        return 1
    # A server that listens on every address, or on none in particular, listens on this one.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    connection: http.client.HTTPConnection
    if settings.tls_certificate is None:
        connection = http.client.HTTPConnection(host, settings.port, timeout=TIMEOUT_SECONDS)
    else:
        # It is our own server, on our own machine: what its certificate says is for its clients to judge.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(host, settings.port, timeout=TIMEOUT_SECONDS, context=context)
    try:
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        said = response.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        print(f"{host}:{settings.port} does not answer: {error.__class__.__name__}", file=sys.stderr)
        return 1
    finally:
        connection.close()
    print(said.strip())
    return 0 if response.status == http.HTTPStatus.OK else 1


if __name__ == "__main__":
    sys.exit(main())
