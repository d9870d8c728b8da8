"""An action of a door: what it takes on the wire, how that is checked, what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from angelhair.server.aws.shape import Shape


class Operation:
    """An action, with its decoder made once."""

    __slots__ = ("check", "decode", "input", "name", "output")

    def __init__(self, input_type: type[Shape], check: Callable[[Any], Any], output: type[Shape]) -> None:
        self.name = input_type.__name__.removesuffix("Request")
        self.input = input_type
        self.check = check
        """Makes of an input what the action works with, or raises an `AwsError`."""
        self.output = output
        self.decode: Callable[[bytes], Any] = msgspec.json.Decoder(input_type).decode
