"""A queue's settings on a command line: NAME=VALUE or --name VALUE, each read as what the model says that it is."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import Field, fields
from difflib import get_close_matches
from typing import Any

from angelhair.cli.exits import WrongUsage
from angelhair.cli.parsers import duration
from angelhair.model import QueueSettings

DURATION_SUFFIX = "_ms"
NOTHING = {"none", "null"}
_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

KNOWN: dict[str, Field[Any]] = {field.name.removesuffix(DURATION_SUFFIX): field for field in fields(QueueSettings)}
KNOWN["shards"] = KNOWN["lanes"]
"""What the lanes of a timeline are called."""


class _Option(argparse.Action):
    """Keeps a setting that was written as an option in the form of those that were not."""

    def __call__(
        self, parser: argparse.ArgumentParser, chosen: argparse.Namespace, value: Any, option: str | None = None
    ) -> None:
        setattr(chosen, self.dest, [*(getattr(chosen, self.dest) or []), f"{self.metavar}={value}"])


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "settings", metavar="NAME=VALUE", nargs="*", default=[],
        help=f"a setting: {', '.join(KNOWN)}. Times as 30, 30s, 5m, 2h, 1d; none where it may be without. "
        "--visibility-timeout 30s says the same as visibility_timeout=30s",
    )
    for name in KNOWN:
        # Not in the help: as many lines again, for what stands there already.
        parser.add_argument(
            f"--{name.replace('_', '-')}", action=_Option, dest="options", metavar=name, help=argparse.SUPPRESS
        )


def read_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Raises `WrongUsage`. Bounds are the server's business."""
    return read_pairs([*arguments.settings, *(arguments.options or [])])


def read_pairs(given: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise WrongUsage(f"{text!r} is not NAME=VALUE, as in visibility_timeout=30s")
        if name not in KNOWN:
            close = get_close_matches(name, KNOWN, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(KNOWN)}"
            raise WrongUsage(f"a queue has no setting {name!r}; {hint}")
        if name in found:
            raise WrongUsage(f"{name} is given twice")
        found[name] = _read(name, KNOWN[name], value)
    return found


def _read(name: str, field: Field[Any], value: str) -> Any:
    # The annotations are text: the model postpones them.
    kind = str(field.type)
    if value.lower() in NOTHING and "None" in kind:
        return None
    if field.name.endswith(DURATION_SUFFIX):
        try:
            seconds = duration(value)
        except argparse.ArgumentTypeError as error:
            raise WrongUsage(f"{name}: {error}") from None
        return int(seconds) if seconds.is_integer() else seconds
    if kind.startswith("bool"):
        if value.lower() not in _YES_NO:
            raise WrongUsage(f"{name}: {value!r} is neither true nor false")
        return _YES_NO[value.lower()]
    if kind.startswith("int"):
        if not (value.isascii() and value.isdigit()):
            raise WrongUsage(f"{name}: {value!r} is not a whole number")
        return int(value)
    return value
