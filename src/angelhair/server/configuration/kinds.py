"""What a value may be, whether it comes as text (flags, environment) or as YAML.

A complaint never quotes the value: whoever reports it knows whether it is a secret.
"""

from __future__ import annotations

import ipaddress
import math
import os.path
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol
from urllib.parse import urlsplit

from angelhair import limits
from angelhair.settings import DEFAULT_GRAPHITE_PORT, host_and_port


class Wrong(ValueError):
    """Says what is wrong with a value, as the rest of a sentence that begins with the value."""


class Unspeakable(Wrong):
    """The value may hold a secret, so the sentence has to begin with something else."""


class Kind(Protocol):
    """Empty values never get here: they are unset."""

    @property
    def wanted(self) -> str:
        """What a value of this kind looks like, for the help."""
        ...

    def from_text(self, text: str) -> Any: ...

    def from_yaml(self, value: object) -> Any: ...


Check = Callable[[str], str]
"""Returns the value to use, or raises `Wrong`."""


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True)
class Text:
    wanted: str = "TEXT"
    check: Check = _as_it_is
    exact: bool = False
    """Take it as it is, white space and control characters too: a password."""
    longest: int = limits.SETTING_LENGTH

    def from_text(self, text: str) -> str:
        if not self.exact:
            text = text.strip()
            if any(ord(character) < ord(" ") or character == "\x7f" for character in text):
                raise Wrong("has a control character in it")
        if len(text) > self.longest:
            raise Wrong(f"is longer than {self.longest} characters")
        return self.check(text)

    def from_yaml(self, value: object) -> str:
        if isinstance(value, str):
            return self.from_text(value)
        # Taken as text it would not be what was written: 0123 and 1e3 look different once they are numbers.
        raise Wrong(f"is {_what(value)} in YAML, and text is wanted; put it in quotes")


@dataclass(frozen=True)
class Whole:
    least: int
    most: int
    wanted: str = "N"

    def from_text(self, text: str) -> int:
        # int() would take 0_9, ٣ and surrounding space; a leading zero is octal to some and not to others.
        if re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", text.strip()) is None:
            raise Wrong(f"is not a whole number from {self.least} to {self.most}")
        return self._within(int(text))

    def from_yaml(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"is {_what(value)} in YAML, and a whole number (plain digits) is wanted")
        return self._within(value)

    def _within(self, number: int) -> int:
        if not self.least <= number <= self.most:
            raise Wrong(f"is not a whole number from {self.least} to {self.most}")
        return number


@dataclass(frozen=True)
class Seconds:
    least: float
    most: float
    wanted: str = "SECONDS"

    def from_text(self, text: str) -> float:
        if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text.strip()) is None:
            raise Wrong(f"is not a number of seconds from {self.least:g} to {self.most:g}")
        return self._within(float(text))

    def from_yaml(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Wrong(f"is {_what(value)} in YAML, and a number of seconds is wanted")
        return self._within(float(value))

    def _within(self, number: float) -> float:
        if not math.isfinite(number) or not self.least <= number <= self.most:
            raise Wrong(f"is not a number of seconds from {self.least:g} to {self.most:g}")
        return number


@dataclass(frozen=True)
class YesNo:
    wanted: str = "true|false"

    def from_text(self, text: str) -> bool:
        match text.strip().lower():
            case "true" | "yes" | "on" | "1":
                return True
            case "false" | "no" | "off" | "0":
                return False
            case _:
                raise Wrong("is neither true nor false")

    def from_yaml(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise Wrong(f"is {_what(value)} in YAML, and true or false (without quotes) is wanted")


@dataclass(frozen=True)
class Choice:
    """One of a few words, in whatever case."""

    words: Sequence[str]

    @property
    def wanted(self) -> str:
        return "|".join(self.words)

    def from_text(self, text: str) -> str:
        for word in self.words:
            if word.lower() == text.strip().lower():
                return word
        near = get_close_matches(text.strip().upper(), [word.upper() for word in self.words], 1)
        meant = f"; did you mean {next(word for word in self.words if word.upper() == near[0])}?" if near else ""
        said = f"is not {self.words[0]}" if len(self.words) == 1 else f"is none of {', '.join(self.words)}"
        raise Wrong(said + meant)

    def from_yaml(self, value: object) -> str:
        if isinstance(value, str):
            return self.from_text(value)
        raise Wrong(f"is {_what(value)} in YAML, and {self.wanted} is wanted")


@dataclass(frozen=True)
class Addresses:
    """Names or addresses, without ports: all nodes listen on the same one."""

    wanted: str = "A,B,…"

    def from_text(self, text: str) -> tuple[str, ...]:
        return self._checked([part.strip() for part in text.split(",")])

    def from_yaml(self, value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            return self.from_text(value)
        if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
            raise Wrong(f"is {_what(value)} in YAML, and a list of addresses or a text with commas is wanted")
        return self._checked([part.strip() for part in value])

    def _checked(self, parts: list[str]) -> tuple[str, ...]:
        if len(parts) > limits.CONTACT_POINTS:
            raise Wrong(f"names more than {limits.CONTACT_POINTS} addresses")
        for part in parts:
            if not part:
                raise Wrong("has an empty address in it")
            host_without_port(part, ", cassandra_port")
        # The same address twice is one address; the order says which is tried first.
        return tuple(dict.fromkeys(parts))


HOST_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_]([A-Za-z0-9_.-]{0,252}[A-Za-z0-9_.])?")
"""Underscores are not allowed in host names, and Docker's names are full of them."""


def host_without_port(text: str, named: str = "") -> str:
    try:
        return str(ipaddress.ip_address(text)) if ":" in text else _host_name(text)
    except ValueError:
        if re.fullmatch(r"(.*[^:]|\[.*\]):[0-9]+", text):
            raise Wrong(f"has a port in it, which is a setting of its own{named}") from None
        raise Wrong("is not a host name or an address") from None


def _host_name(text: str) -> str:
    if HOST_NAME.fullmatch(text) is None:
        raise ValueError
    return text


def path(text: str) -> str:
    """Shells expand ~; files and `docker run -e` do not."""
    return os.path.expanduser(text)


def keyspace_name(text: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9_]{0,47}", text) is None:
        raise Wrong("is not made of at most 48 lower case letters, digits and _, a letter first")
    return text


def graphite_place(text: str) -> str:
    if "@" in text:
        raise Unspeakable("has a user in it; Graphite takes none")
    if "://" in text and not text.startswith("tcp://"):
        raise Wrong("is not host, host:port or tcp://host:port; Graphite's plain text protocol is spoken")
    try:
        host, port = host_and_port(text, DEFAULT_GRAPHITE_PORT)
    except ValueError:
        raise Wrong("is not host, host:port or tcp://host:port") from None
    host_without_port(host)
    if not 1 <= port <= limits.PORT_MAXIMUM:
        raise Wrong(f"has a port that is not from 1 to {limits.PORT_MAXIMUM}")
    return text


def graphite_path(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", text) is None:
        raise Wrong("is not made of letters, digits, _ and -, with single dots between")
    return text


def http_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port  # either may turn out to be none
    except ValueError:
        raise Wrong("is not an http:// or https:// address") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise Wrong("is not an http:// or https:// address")
    if "@" in parts.netloc:
        raise Unspeakable("has a user in it; it would be seen in what the server tells")
    return text


def _what(value: object) -> str:
    match value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "a group of keys"
        case _:
            return f"a {type(value).__name__}"
