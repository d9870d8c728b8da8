"""Flags over environment over file over defaults: one frozen object, and where each of its values came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from angelhair import limits
from angelhair.server.configuration.checks import problems_together
from angelhair.server.configuration.environment import CONFIG_VARIABLE, read_environment, unknown_variables
from angelhair.server.configuration.fields import BY_NAME, DEFAULTS, FIELDS, PASSWORD_FILE, Field
from angelhair.server.configuration.file import DIRECTORY, find_file, read_file
from angelhair.server.configuration.kinds import Unspeakable, Wrong
from angelhair.server.configuration.refusal import SettingsRefused
from angelhair.server.configuration.said import DEFAULT, Ignored, Layer, Origin, Said
from angelhair.settings import DEFAULT_DATA, Settings


@dataclass(frozen=True, slots=True)
class Resolved:
    settings: Settings
    origins: Mapping[str, Origin]
    """Of every setting."""
    ignored: tuple[Ignored, ...]
    """What was said and does not count."""
    file: Path | None


def resolve(
    flags: Mapping[str, str | bool], environment: Mapping[str, str], directory: Path = DIRECTORY
) -> Resolved:
    """`flags` by the settings' names, and `config`. Raises `SettingsRefused` with every problem at once."""
    problems: list[str] = list(unknown_variables(environment))
    said: list[Said | Ignored] = []
    for name, raw in flags.items():
        if name == "config":
            continue
        origin = Origin(Layer.FLAG, "--" + name.replace("_", "-"))
        if name in BY_NAME and BY_NAME[name].secret:
            problems.append(
                f"{origin}: is no flag, because everybody on a machine sees the flags of its processes; use "
                f"--{PASSWORD_FILE.replace('_', '-')} or the variable {BY_NAME[name].own_variable}"
            )
        elif isinstance(raw, str) and not raw.strip():
            problems.append(f"{origin}: is empty")
        else:
            said.append(Said(name, origin, raw))
    said += read_environment(environment, password_elsewhere=PASSWORD_FILE in flags)
    file = None
    try:
        file = find_file(_config(flags, environment), directory)
        if file is not None:
            in_file, problems_in_file = read_file(file)
            said += in_file
            problems += problems_in_file
    except SettingsRefused as refused:
        problems += refused.problems
    said = _with_the_password(said, problems)
    values, origins, ignored = _chosen(said, problems)
    problems += problems_together(values, origins)
    if problems:
        raise SettingsRefused(problems)
    if not values["contact_points"] and values["data"] is None:
        values["data"] = DEFAULT_DATA
    return Resolved(Settings(**values), origins, ignored, file)


def _config(flags: Mapping[str, str | bool], environment: Mapping[str, str]) -> str | None:
    named = flags.get("config")
    if named is not None:
        return str(named)
    return environment.get(CONFIG_VARIABLE, "").strip() or None


def _chosen(
    said: list[Said | Ignored], problems: list[str]
) -> tuple[dict[str, Any], dict[str, Origin], tuple[Ignored, ...]]:
    by_field: dict[str, list[Said]] = {field.name: [] for field in FIELDS}
    ignored = [one for one in said if isinstance(one, Ignored)]
    for one in said:
        if isinstance(one, Said):
            by_field[one.field].append(one)
    values: dict[str, Any] = dict(DEFAULTS)
    origins = dict.fromkeys(values, DEFAULT)
    for field in FIELDS:
        counts = field.parent is None or bool(values[field.parent])
        for one in by_field[field.name]:
            # A variable that does not count may be anybody's: whatever is in it, it is no mistake.
            if not counts and one.origin.layer is Layer.ENVIRONMENT:
                ignored.append(Ignored(one.origin, f"counts only with {field.parent}"))
                continue
            try:
                value = one.value(field)
            except Wrong as wrong:
                shown = "its value" if isinstance(wrong, Unspeakable) else one.shown(field)
                problems.append(f"{one.origin}: {shown} {wrong}")
                continue
            if not counts:
                ignored.append(Ignored(one.origin, f"counts only with {field.parent}"))
            elif origins[field.name] is DEFAULT:
                values[field.name] = value
                origins[field.name] = one.origin
    _forgotten_contact_points(by_field, values, problems)
    return values, origins, tuple(ignored)


def _forgotten_contact_points(
    by_field: Mapping[str, list[Said]], values: Mapping[str, Any], problems: list[str]
) -> None:
    """Who names a keyspace means Cassandra. To serve from a file instead would look well, until the file is lost."""
    if not values["contact_points"] and by_field["keyspace"] and not by_field["contact_points"]:
        problems.append(
            f"{by_field['keyspace'][0].origin}: names a keyspace, but there are no contact points to find it by; set "
            "contact_points (CONTACT_POINTS), or leave the keyspace out to use the embedded file"
        )


def _with_the_password(said: list[Said | Ignored], problems: list[str]) -> list[Said | Ignored]:
    """Replaces the place of the password by the password."""
    rest: list[Said | Ignored] = []
    taken = False
    for one in said:
        if isinstance(one, Ignored) or one.field != PASSWORD_FILE:
            rest.append(one)
        elif any(isinstance(other, Said) and other.field == "password" and other.origin.layer is one.origin.layer
                 for other in said):
            problems.append(f"{one.origin}: a password and a file with one were both given")
        elif not taken:
            taken = True
            try:
                rest.append(Said("password", one.origin, _password_in(one, BY_NAME["password"])))
            except Wrong as wrong:
                problems.append(f"{one.origin}: {one.raw!r} {wrong}")
    # The highest layer first, whatever way it was said; the order within a layer stays.
    return sorted(rest, key=lambda one: -one.origin.layer)


def _password_in(said: Said, field: Field) -> str:
    if not isinstance(said.raw, str):
        raise Wrong("is not the name of a file")
    try:
        with Path(said.raw).expanduser().open("rb") as file:
            content = file.read(limits.PASSWORD_FILE_BYTES + 1)
        text = content.decode()
    except OSError as error:
        raise Wrong(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise Wrong("is not UTF-8") from None
    if len(content) > limits.PASSWORD_FILE_BYTES:
        raise Wrong(f"is larger than {limits.PASSWORD_FILE_BYTES} bytes")
    # Editors and `echo` end a file with a line break; it is no part of a password.
    password = text.removesuffix("\n").removesuffix("\r")
    if not password:
        raise Wrong("is empty")
    return str(field.kind.from_text(password))
