"""`angelhair serve`: the queue service, on an embedded file or on Cassandra."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from angelhair.cli.config import add_settings_flags, complain, read_settings
from angelhair.cli.output import on_terminal
from angelhair.cli.parsers import add_command
from angelhair.errors import AngelhairError
from angelhair.server.configuration import SettingsRefused
from angelhair.server.installing import to_install
from angelhair.settings import Settings

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
"""Addresses that are listened on and cannot be asked, and what can be in their place."""

WHAT_NEXT = """\
To try it, in another terminal:
  curl -X PUT {url}/queues/hello
  curl -X PUT {url}/queues/hello/message -H 'Content-Type: text/plain' -d 'hello'
  curl {url}/queues/hello/messages/10
Or, where the AWS command line is, which wants some region and some key:
  AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_DEFAULT_REGION=us-east-1 aws --endpoint-url {url} sqs list-queues
All that it can do is at {url}/docs; Ctrl-C stops it."""

CANNOT_SERVE = 1
"""The exit code when the settings are right and something is in the way all the same."""


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "serve", "serve queues over HTTP",
        "Serves queues over HTTP: from an embedded file under --data, or from Cassandra with --contact-points. Says "
        "one line when it is ready, and on a terminal what to try. SIGTERM or Ctrl-C lets requests under way finish. "
        "Other addresses than the loopback need access keys (`angelhair key create`), or --open.",
        """
        angelhair serve --port 9324 --data ./angelhair-data
        angelhair serve --contact-points 10.0.0.1,10.0.0.2 --keyspace queues --host 0.0.0.0""",
        run,
    )
    parser.add_argument("--hints", action="store_true", help="say what to try, also where the output is no terminal")
    add_settings_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        return _serve(read_settings(arguments).settings, arguments.hints)
    except SettingsRefused as refused:
        return complain("serve", refused)


def _serve(settings: Settings, hints: bool) -> int:
    # Only now: a mistake in the settings is said without waiting for everything that serving needs.
    from angelhair.cli.opening import describe_store, open_store, prepare

    try:
        from angelhair.server import processes, serving
        from angelhair.server.tls import tls_context
    except ModuleNotFoundError as error:
        _say(f"{error.name} is not installed, which serving needs; {to_install('server')}")
        return CANNOT_SERVE

    try:
        # Each process makes its own; here, what is wrong with it is said once, before anything is started or created.
        tls_context(settings)
        listening = serving.listen(settings)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if settings.tls_certificate is not None else "http"

        def ready() -> None:
            print(f"angelhair serves {scheme}://{shown}:{port} from {describe_store(settings)}", flush=True)
            # Whoever sits there is told how to go on; a log of a service is spared it.
            if hints or on_terminal(sys.stdout):
                print(WHAT_NEXT.format(url=f"{scheme}://{EVERYWHERE.get(shown, shown)}:{port}"), flush=True)

        def prepared() -> None:
            # Once, whatever the number of processes: what has to be created is created, what is unsafe is said.
            asyncio.run(prepare(settings, _say))

        if settings.workers > 1:
            return processes.run_many(settings, prepared, lambda: open_store(settings), listening, ready)
        prepared()
        serving.run(settings, lambda: open_store(settings), listening, ready)
    except SettingsRefused:
        raise
    except serving.CannotListen as error:
        hint = ""
        if error.is_taken:
            # Whoever asks for hints has most likely started it by make.
            hint = "; --port names another"
            if hints:
                hint = f"; make serve ARGS='--port {settings.port + 1}' takes another"
        _say(f"{error}{hint}")
        return CANNOT_SERVE
    except AngelhairError as error:
        _say(str(error))
        return CANNOT_SERVE
    return 0


def _say(line: str) -> None:
    print(f"angelhair serve: {line}", file=sys.stderr, flush=True)
