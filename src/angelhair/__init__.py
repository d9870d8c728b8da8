"""Angelhair. The server is started by the command; what a program imports from here is the client.

The client's names are found when they are asked for: `import angelhair` stays cheap, and works without httpx.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angelhair.client import AsyncClient, AsyncConsumer, Client, Consumer, Draft, Message, Receipt, Retry

__all__ = ["Client", "AsyncClient", "Consumer", "AsyncConsumer", "Draft", "Message", "Receipt", "Retry"]

if not TYPE_CHECKING:  # so that a type checker still knows a misspelled name from a lazy one

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from angelhair import client
        except ModuleNotFoundError as error:
            if error.name != "httpx":
                raise
            raise ImportError(f"angelhair.{name} needs httpx: pip install angelhair", name="httpx") from error
        return getattr(client, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
