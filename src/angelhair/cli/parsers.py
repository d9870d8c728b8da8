"""What the parsers of all commands have in common: complaints of one line, examples in the help, kinds of arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, NoReturn

from angelhair import limits
from angelhair.cli.exits import WRONG_USAGE

EXAMPLES = "examples:\n"

_SECONDS = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

DURATION_WANTED = "seconds, or a number with ms, s, m, h, d or w behind it, such as 30, 1.5s, 5m"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where the rest can be read."""

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """What nobody knows is said by the command that was asked, with the option that may have been meant."""
        self._expect_own(next(iter(args or []), ""))
        chosen, unknown = self.parse_known_args(args, namespace)
        if unknown and not _taken_late(self._asked(chosen), chosen, unknown):
            # What stands before the command is for nobody but this parser.
            first = next(iter(args or []), None)
            asked = self if unknown[0] == first else self._asked(chosen)
            written = unknown[0].partition("=")[0]
            # Without the dashes, which make short words look alike.
            known = [option[2:] for option in asked._option_string_actions if option.startswith("--")]
            meant = get_close_matches(written[2:], known, 1) if written.startswith("--") else []
            hint = f" (did you mean --{meant[0]}?)" if meant else ""
            asked.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return chosen

    def _expect_own(self, first: str) -> None:
        """What stands before a command can only be ours; if it is not, its value would be taken for the command."""
        written = first.partition("=")[0]
        if written.startswith("--") and not any(own.startswith(written) for own in self._option_string_actions):
            self.error(f"unrecognized arguments: {written}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A command that there is not is named with the one that may have been meant, or with all there are."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            meant = get_close_matches(str(value), action.choices, 1)
            hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(action.choices)}"
            self.error(f"there is no command {value!r} ({hint})")
        super()._check_value(action, value)

    def has_commands(self, name: str) -> bool:
        """Whether this command has commands of its own."""
        asked = self._asked(argparse.Namespace(command=name))
        return asked is not self and asked._subparsers is not None

    def _asked(self, chosen: argparse.Namespace) -> argparse.ArgumentParser:
        """The parser of the command, or of the command of a command."""
        asked: argparse.ArgumentParser = self
        for name in (chosen.command, getattr(chosen, "subcommand", None)):
            for action in asked._actions:
                if isinstance(action, argparse._SubParsersAction) and name in action.choices:
                    asked = action.choices[name]
        return asked

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            sys.stderr.write(message)
        sys.exit(status)


def _taken_late(asked: argparse.ArgumentParser, chosen: argparse.Namespace, words: list[str]) -> bool:
    """Whether these are the words that may be left out: where an option stands before them, older Pythons take them as
    left out, and what then comes as unknown."""
    action = next((each for each in asked._get_positional_actions() if each.nargs in ("?", "*")), None)
    if action is None or getattr(chosen, action.dest) not in (action.default, []):
        return False
    if any(word.startswith("-") and word != "-" for word in words) or (action.nargs == "?" and len(words) > 1):
        return False
    setattr(chosen, action.dest, asked._get_values(action, words))
    return True


class Help(argparse.HelpFormatter):
    """Fills paragraphs, leaves examples as they are, and knows that commands are indented."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            # Their names are measured before they are indented: the longest would not fit beside its summary.
            self._action_max_length += self._indent_increment

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(EXAMPLES):
            return "".join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


def add_command(
    commands: Any, name: str, summary: str, description: str, examples: str, run: Callable[[Any], int]
) -> argparse.ArgumentParser:
    """A command, or a command of a command, that does something."""
    lines = "".join(f"  {line.strip()}\n" for line in examples.strip().splitlines())
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=description, epilog=EXAMPLES + lines, formatter_class=Help,
        # An abbreviation that works today is another option's tomorrow.
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, program=parser.prog)
    return parser


def add_group(commands: Any, name: str, summary: str, description: str) -> Any:
    """A command that has commands of its own."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=description, formatter_class=Help, allow_abbrev=False
    )
    return parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")


def add_queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queue", metavar="QUEUE", help="the queue's name")


def duration(text: str) -> float:
    """Seconds."""
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(number):]
    try:
        # float() takes more than numbers as people write them: 1_0, infinity, and digits of other scripts.
        if unit not in _SECONDS or not number.isascii() or not set(number) <= set("0123456789."):
            raise ValueError
        return round(float(number) * _SECONDS[unit], 3)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: {DURATION_WANTED}") from None


def due(text: str) -> datetime:
    try:
        if not (text.isascii() and text.replace(".", "", 1).isdigit()):
            # Without a zone it is the clock on the wall that is meant.
            return datetime.fromisoformat(text).astimezone()
        if float(text) <= limits.DUE_MAXIMUM_SECONDS:
            return datetime.fromtimestamp(float(text), UTC)
    except OverflowError:
        # Of the first or the last day that there is, in another zone.
        pass
    except (ValueError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: 2026-11-15T13:00:00Z, '2026-11-15 13:00' (local time), or seconds since 1970"
        ) from None
    raise argparse.ArgumentTypeError(f"{text!r} does not lie between 1970 and 2100, as all due times do")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < least or (most is not None and number > most):
            bounds = f"from {least} on" if most is None else f"between {least} and {most}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {bounds}")
        return number

    return read
