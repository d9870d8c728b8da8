"""What a YAML file says.

YAML guesses what a word is: `no` is false, 0123 is 83, 12:30 is 750, and the second of two equal keys wins unseen. This
reader guesses less. Only true and false are truth values, only plain decimals are numbers, all else is text, and each
setting takes one of these and nothing else. Keys stand alone or in groups:

    contact_points: [10.0.0.1, 10.0.0.2]      cassandra:
    cassandra_port: 9042                        contact_points: [10.0.0.1, 10.0.0.2]
                                                port: 9042
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from angelhair import limits
from angelhair.server.configuration.fields import BY_NAME, FIELDS, OWN_PREFIX, PASSWORD_FILE, SECTIONS
from angelhair.server.configuration.refusal import SettingsRefused
from angelhair.server.configuration.said import Layer, Origin, Said, is_unset
from angelhair.server.configuration.words import did_you_mean
from angelhair.server.installing import to_install

DIRECTORY = Path("/data/conf")
"""Where the ancestors' containers had it."""

SUFFIXES = (".yaml", ".yml")

PLACEHOLDER = "${"
"""How one begins."""

_ANCESTORS = {
    "cassandra.clusterName": "cluster_name",
    "cassandra.contactPoints": "contact_points",
    "cassandra.authProvider.type": "auth_provider",
    "cassandra.authProvider.username": "username",
    "cassandra.authProvider.password": "password",
    "cassandra.queryOptions.consistencyLevel": "consistency_level",
    "cassandra.loadBalancingPolicy.dataCenter": "data_center",
    "cassandra.ssl.port": "ssl_port",
}
"""How CassieQ's own file called them."""

_ANCESTORS_SSL = "cassandra.ssl"
"""In that file SSL was on as soon as this group was there."""


def _known_paths() -> dict[str, str]:
    paths = {PASSWORD_FILE: PASSWORD_FILE, f"cassandra.{PASSWORD_FILE}": PASSWORD_FILE}
    for field in FIELDS:
        paths[field.name] = field.name
        paths[f"{field.section}.{field.name}"] = field.name
        if field.short is not None:
            paths[f"{field.section}.{field.short}"] = field.name
    return {**paths, **_ANCESTORS}


PATHS = _known_paths()
GROUPS = {path[: dot.start()] for path in PATHS for dot in re.finditer(r"\.", path)}


def find_file(said: str | None, directory: Path = DIRECTORY) -> Path | None:
    """The one file to read: the one that was named, or the only one in the directory."""
    if said is None:
        return _only_one_in(directory) if directory.is_dir() else None
    named = Path(said).expanduser()
    if named.is_dir():
        return _only_one_in(named)
    return named


def _only_one_in(directory: Path) -> Path:
    try:
        found = sorted(
            entry for entry in directory.iterdir()
            if entry.suffix.lower() in SUFFIXES and not entry.name.startswith(".") and not entry.is_dir()
        )
    except OSError as error:
        raise SettingsRefused([f"{directory}: cannot be read: {error.strerror}"]) from error
    if len(found) == 1:
        return found[0]
    if not found:
        raise SettingsRefused([f"{directory}: has no .yaml or .yml file in it, and exactly one is wanted"])
    names = ", ".join(entry.name for entry in found)
    raise SettingsRefused([f"{directory}: has {len(found)} files in it ({names}), and exactly one is wanted"])


def read_file(path: Path) -> tuple[list[Said], list[str]]:
    """What is said, and the problems with its keys. Raises `SettingsRefused` when it cannot be read at all."""
    try:
        with path.open("rb") as file:
            content = file.read(limits.CONFIGURATION_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsRefused([f"{path}: cannot be read: {error.strerror}"]) from error
    if len(content) > limits.CONFIGURATION_FILE_BYTES:
        raise SettingsRefused([f"{path}: is larger than {limits.CONFIGURATION_FILE_BYTES} bytes"])
    tree = _parsed(path, content)
    if tree is None:
        return [], []
    if not isinstance(tree, dict):
        raise SettingsRefused([f"{path}: is not a list of `key: value` lines"])
    said: dict[str, Said] = {}
    problems: list[str] = []
    unfilled: list[str] = []
    for key, raw in _leaves(tree, "", path, problems):
        field = PATHS[key]
        if _has_placeholder(raw):
            variable = OWN_PREFIX + field.upper()
            unfilled.append(f"{path}: {key}: has a placeholder in it, and nothing fills it in here; leave the key out "
                            f"and set the variable {variable} itself")
        elif field in said:
            problems.append(f"{path}: {key}: was said already, as {said[field].origin.name.rpartition(': ')[2]}")
        elif not is_unset(raw, BY_NAME.get(field)):
            said[field] = Said(field, Origin(Layer.FILE, f"{path}: {key}"), raw)
    if unfilled:
        # What else the file says is not looked at: without these values it would be complained of for nothing.
        raise SettingsRefused([*problems, *unfilled])
    if "use_ssl" not in said and isinstance(tree.get("cassandra"), dict) and "ssl" in tree["cassandra"]:
        said["use_ssl"] = Said("use_ssl", Origin(Layer.FILE, f"{path}: {_ANCESTORS_SSL}"), True)
    return list(said.values()), problems


def _has_placeholder(raw: object) -> bool:
    """CassieQ's own file took `${env.KEYSPACE}` for the variable; as text it would be found out late, or never."""
    return any(isinstance(one, str) and PLACEHOLDER in one for one in (raw if isinstance(raw, list) else [raw]))


def _leaves(
    tree: Mapping[Any, Any], prefix: str, path: Path, problems: list[str]
) -> Iterator[tuple[str, object]]:
    """Every key that is known, with its value. Goes down into known groups only, so it ends whatever the file holds."""
    for key, raw in tree.items():
        dotted = f"{prefix}{key}"
        if dotted in PATHS:
            yield dotted, raw
        elif dotted in GROUPS:
            if isinstance(raw, dict):
                yield from _leaves(raw, f"{dotted}.", path, problems)
            elif raw is not None:
                problems.append(f"{path}: {dotted}: is a group of keys, and no value")
        else:
            shown = dotted if isinstance(key, str) else f"{prefix}{key!r}"
            problems.append(f"{path}: {shown}: there is no such setting{did_you_mean(dotted, [*PATHS, *SECTIONS])}")


def _parsed(path: Path, content: bytes) -> object:
    try:
        import yaml
    except ImportError:
        raise SettingsRefused([f"{path}: reading it needs PyYAML; {to_install('server')}"]) from None

    from angelhair.server.configuration.strict_yaml import Duplicate, load

    try:
        return load(content.decode("utf-8-sig"))
    except Duplicate as error:
        raise SettingsRefused([f"{path}: {error.key}: stands there twice, again on line {error.line}"]) from error
    except yaml.MarkedYAMLError as error:
        # Neither the parser's words nor the line itself: both may quote a password.
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise SettingsRefused([f"{path}: {where}is not YAML; values with special characters need quotes"]) from None
    except UnicodeDecodeError:
        raise SettingsRefused([f"{path}: is not UTF-8"]) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise SettingsRefused([f"{path}: is not YAML"]) from None
