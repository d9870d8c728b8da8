"""Requests between processes, and what becomes of them when one side fails."""

from __future__ import annotations

import pytest

from angelhair.errors import Unavailable
from angelhair.simulation import NoAnswer, Process, SimulationFailure, World, ask
from angelhair.simulation import faults as kinds
from tests.simulation.core.helpers import only, quiet, run

TIMEOUT_MS = 1_000


class Echo:
    """A server's work that takes its time."""

    def __init__(self, world: World, duration_ms: int = 10) -> None:
        self.world = world
        self.server = world.start("server")
        self.client = world.start("client")
        self.duration_ms = duration_ms
        self.done: list[int] = []

    async def work(self) -> str:
        await self.server.sleep(self.duration_ms)
        self.done.append(self.world.now_ms)
        return "echo"

    def ask(self) -> object:
        return run(self.client, ask(self.world.faults, self.client, self.server, self.work, TIMEOUT_MS))


def test_an_answer_comes_back() -> None:
    echo = Echo(quiet())
    assert echo.ask() == "echo"
    assert len(echo.done) == 1


def test_errors_that_callers_may_handle_come_back() -> None:
    echo = Echo(quiet())

    async def work() -> str:
        raise Unavailable("later")

    echo.work = work  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="later"):
        echo.ask()


def test_other_errors_of_the_server_stop_the_world() -> None:
    echo = Echo(quiet())

    async def work() -> str:
        raise KeyError("bug")

    echo.work = work  # type: ignore[method-assign]
    with pytest.raises(SimulationFailure, match="KeyError"):
        echo.ask()


def test_a_lost_request_is_never_worked_on() -> None:
    echo = Echo(only(kinds.REQUEST_LOST))
    with pytest.raises(NoAnswer, match="timed out"):
        echo.ask()
    echo.world.run_for_ms(10_000)
    assert echo.done == []
    assert echo.world.faults.counts == {kinds.REQUEST_LOST: 1}


def test_a_lost_answer_leaves_the_work_done() -> None:
    echo = Echo(only(kinds.ANSWER_LOST))
    with pytest.raises(NoAnswer, match="timed out"):
        echo.ask()
    assert len(echo.done) == 1


def test_work_that_takes_too_long_goes_on_without_its_client() -> None:
    echo = Echo(quiet(), duration_ms=5_000)
    with pytest.raises(NoAnswer, match="timed out"):
        echo.ask()
    assert echo.done == []
    echo.world.run_for_ms(10_000)
    assert len(echo.done) == 1


def test_the_crash_of_the_server_breaks_the_connection() -> None:
    echo = Echo(quiet(), duration_ms=500)
    echo.world.at_ms(100, lambda: echo.world.crash("server"))
    with pytest.raises(NoAnswer, match="connection lost"):
        echo.ask()
    assert echo.world.now_ms < 110
    with pytest.raises(NoAnswer, match="nobody listens"):
        echo.ask()
    assert echo.done == []


def test_the_crash_of_the_client_leaves_the_work_running() -> None:
    echo = Echo(quiet(), duration_ms=500)
    echo.client.spawn(ask(echo.world.faults, echo.client, echo.server, echo.work, TIMEOUT_MS))
    echo.world.at_ms(100, lambda: echo.world.crash("client"))
    echo.world.run_for_ms(10_000)
    assert len(echo.done) == 1


def test_a_paused_server_answers_late_or_not_at_all() -> None:
    echo = Echo(quiet(), duration_ms=100)

    def pause(server: Process = echo.server) -> None:
        server.pause()

    echo.world.at_ms(50, pause)
    with pytest.raises(NoAnswer, match="timed out"):
        echo.ask()
    echo.server.resume()
    echo.world.run_for_ms(1_000)
    assert len(echo.done) == 1
