"""`angelhair serve`: the queue service, on an embedded file or on Cassandra."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

from angelhair.cli.config import add_settings_flags, complain, read_settings
from angelhair.errors import AngelhairError
from angelhair.server.configuration import SettingsRefused, open_warning, serving_problem
from angelhair.settings import Settings

CANNOT_SERVE = 1
"""The exit code when the settings are right and something is in the way all the same."""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "serve",
        help="serve queues over HTTP",
        description="Serves queues over HTTP: from an embedded file under --data, or from Cassandra with "
        "--contact-points. Says one line when it is ready. SIGTERM or Ctrl-C lets requests under way finish.",
        epilog="example: angelhair serve --port 9324 --data ./angelhair-data",
    )
    add_settings_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = read_settings(arguments).settings
        problem = serving_problem(settings)
        if problem is not None:
            raise SettingsRefused([problem])
    except SettingsRefused as refused:
        return complain("serve", refused)
    warning = open_warning(settings)
    if warning is not None:
        _say(warning)
    return _serve(settings)


def _serve(settings: Settings) -> int:
    # Only now: a mistake in the settings is said without waiting for everything that serving needs.
    from angelhair.cli.opening import describe_store, open_store, prepare
    from angelhair.server import processes, serving
    from angelhair.server.tls import tls_context

    try:
        # Each process makes its own; here, what is wrong with it is said once, before anything is started or created.
        tls_context(settings)
        listening = serving.listen(settings)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        scheme = "https" if settings.tls_certificate is not None else "http"

        def ready() -> None:
            print(f"angelhair serves {scheme}://{shown}:{port} from {describe_store(settings)}", flush=True)

        def prepared() -> None:
            # Once, whatever the number of processes: what has to be created is created, what is unsafe is said.
            asyncio.run(prepare(settings, _say))

        if settings.workers > 1:
            return processes.run_many(settings, prepared, lambda: open_store(settings), listening, ready)
        prepared()
        serving.run(settings, lambda: open_store(settings), listening, ready)
    except (AngelhairError, serving.CannotListen) as error:
        _say(str(error))
        return CANNOT_SERVE
    return 0


def _say(line: str) -> None:
    print(f"angelhair serve: {line}", file=sys.stderr, flush=True)
