"""What batching needs from whatever drives it: asyncio in production, the seeded scheduler in simulation."""

from collections.abc import Coroutine, Generator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Promise(Protocol[T]):
    """A result that comes later. Awaiting it gives the result or raises the error."""

    def set_result(self, result: T, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...

    def done(self) -> bool: ...

    def __await__(self) -> Generator[Any, Any, T]: ...


class Runtime(Protocol):
    def promise(self) -> Promise[Any]: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts work that nobody awaits; it must not raise."""
        ...
