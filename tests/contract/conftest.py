"""Runs every test of this folder once for each store, and `async def` tests in their store's world."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator

import pytest

from angelhair.engine.store import Store
from tests.contract.worlds import WORLDS, Entry, World, imported_world


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--store", metavar="PACKAGE.MODULE:FACTORY", help="run the contract against this store and no other"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A store that cannot be found is said in one line, before anything is collected."""
    address = config.getoption("--store", default=None)
    if address is None:
        return
    module, _, name = address.partition(":")
    if not module or not name:
        raise pytest.UsageError(f"--store wants package.module:factory, not {address!r}")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise pytest.UsageError(
            f"--store: {module!r} cannot be imported ({error}); is the package installed in this environment?"
        ) from error
    if not callable(getattr(found, name, None)):
        raise pytest.UsageError(f"--store: module {module!r} has no factory {name!r}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "world" not in metafunc.fixturenames:
        return
    address = metafunc.config.getoption("--store", default=None)
    entries = {address: imported_world(address)} if address else WORLDS
    metafunc.parametrize(
        "world",
        [pytest.param(entry, id=name, marks=entry.marks) for name, entry in entries.items()],
        indirect=True,
        scope="session",
    )


@pytest.fixture(scope="session")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    entry: Entry = request.param
    with entry.open(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.fixture
def store(world: World) -> Store:
    return world.store


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    pyfuncitem.funcargs["world"].run(pyfuncitem.obj(**arguments))
    return True
