"""Named tuples by the hundred: a group of receives makes some for each message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

Made = TypeVar("Made", bound=tuple[Any, ...])


def maker(kind: type[Made]) -> Callable[[tuple[Any, ...]], Made]:
    """Makes one from all of its values, in their order, in half the time that calling its class takes."""
    return partial(tuple.__new__, kind)
