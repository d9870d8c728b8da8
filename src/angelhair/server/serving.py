"""A server's life: open the store, start the background, open the doors, wait for the signal, close in order."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import uvloop

from angelhair import limits
from angelhair.clock import Clock, SystemClock
from angelhair.engine.members import Presence
from angelhair.engine.store import Store
from angelhair.identities import RandomIdentities
from angelhair.server.app import App
from angelhair.server.audit import Audit
from angelhair.server.configuration import SettingsRefused, serving_problem
from angelhair.server.gate import Gate
from angelhair.server.http import HttpServer
from angelhair.server.keyring import Keyring
from angelhair.server.observing.logs import Logs
from angelhair.server.observing.measured_engine import MeasuredEngine
from angelhair.server.observing.operations import Observing
from angelhair.server.release import version
from angelhair.server.rest.door import RestDoor
from angelhair.server.service import Service, label
from angelhair.server.sns.door import SnsDoor
from angelhair.server.sqs.door import SqsDoor
from angelhair.server.sts.door import StsDoor
from angelhair.server.tls import tls_context
from angelhair.settings import Settings

EVERYWHERE = frozenset({"0.0.0.0", "::"})
"""Where a server listens that is to be reached by any of its machine's addresses."""

OpenStore = Callable[[], Awaitable[Store]]


class CannotListen(Exception):
    """The address is taken, or not ours."""

    def __init__(self, message: str, is_taken: bool = False) -> None:
        super().__init__(message)
        self.is_taken = is_taken


class Place(NamedTuple):
    """Which of several processes of one server this is, the directory that they share, and the pipe that ends when
    their parent does."""

    number: int
    directory: str
    parent: int


def listen(settings: Settings) -> socket.socket:
    """The socket that all of this server's processes accept from."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise CannotListen(f"{settings.host} cannot be listened on: {error.strerror or error}") from error
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(limits.HTTP_BACKLOG)
    except OSError as error:
        listening.close()
        raise CannotListen(
            f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}", error.errno == errno.EADDRINUSE
        ) from error
    listening.setblocking(False)
    return listening


async def serve(
    settings: Settings,
    open_store: OpenStore,
    listening: socket.socket,
    ready: Callable[[], None],
    stopping: asyncio.Event,
    place: Place | None = None,
    lines: Logs | None = None,
) -> None:
    """Serves until `stopping` is set. Raises what kept it from starting."""
    tls = tls_context(settings)
    clock, identities = SystemClock(), RandomIdentities()
    observing = Observing(settings, *((None, None) if place is None else (place.number, place.directory)))
    store = observing.store(await open_store(), clock)
    engine = MeasuredEngine(store, identities, clock, observing.observer)
    engine.memory.sync_ms = int(settings.databag_sync_seconds * 1000)
    service = Service(store, identities, clock, engine, observing.observer)
    audit = Audit()
    keyring = Keyring(store, audit)
    gate = Gate(keyring, clock, audit)
    sqs = SqsDoor(service, gate)
    sns = SnsDoor(service, gate, own_url(settings), settings.public_url, settings.allow_private_endpoints)
    app = App([sqs, sns, StsDoor(gate), RestDoor(service, gate), observing.door(store)])
    http = HttpServer(observing.handler(app.handle), identities.fresh, observing.refused)
    observing.watch(http, service.polling, service.workers, engine, label, lines)
    try:
        await keyring.load()
        problem = serving_problem(settings)
        if problem is not None and not keyring.enforced:
            # Looked at before; the last key may have gone since.
            raise SettingsRefused([problem])
        keyring.start()
        service.start(presence(settings, listening, clock, place))
        sqs.start()
        sns.start()
        await observing.start()
        await http.listen(listening, tls)
        ready()
        await stopping.wait()
    finally:
        observing.stopping()
        service.polling.stop()
        await http.stop(settings.stop_grace_seconds)
        await observing.stop()
        await keyring.stop()
        await sqs.stop()
        await sns.stop()
        await service.stop()


def own_url(settings: Settings) -> str:
    """What the server calls itself where nobody says what it is called."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls_certificate else 'http'}://{host}:{settings.port}"


def presence(settings: Settings, listening: socket.socket, clock: Clock, place: Place | None) -> Presence:
    """What other servers, and those who look at the cluster, are told of this process."""
    host, port = listening.getsockname()[:2]
    name = socket.gethostname()
    if host in EVERYWHERE:
        host = name
    shown = f"[{host}]" if ":" in host else host
    address = f"{'https' if settings.tls_certificate else 'http'}://{shown}:{port}"
    return Presence(address, name, 0 if place is None else place.number, version(), clock.now().wall_ms)


def settle_down() -> None:
    """What a server is made of lives as long as it does; no search for cycles needs to walk through it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(limits.COLLECT_EVERY)


def run(
    settings: Settings,
    open_store: OpenStore,
    listening: socket.socket,
    ready: Callable[[], None],
    place: Place | None = None,
) -> None:
    """One process, until SIGTERM or SIGINT. A second signal ends it at once."""

    async def main(lines: Logs) -> None:
        loop = asyncio.get_running_loop()
        lines.watch(loop)
        stopping = asyncio.Event()

        def stop() -> None:
            if stopping.is_set():
                os._exit(limits.EXIT_HURRIED)
            stopping.set()

        def orphaned(parent: int) -> None:
            loop.remove_reader(parent)
            stopping.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        if place is not None:
            loop.add_reader(place.parent, orphaned, place.parent)
        await serve(settings, open_store, listening, started, stopping, place, lines)

    def started() -> None:
        settle_down()
        ready()

    lines = Logs(settings.log_level, settings.log_format, settings.application_name)
    try:
        uvloop.run(main(lines))
    finally:
        lines.stop()
