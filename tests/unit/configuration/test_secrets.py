"""A password is shown nowhere: not in settings, tables, JSON or complaints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from angelhair import limits
from angelhair.cli.config import HIDDEN, as_json, as_rows
from tests.unit.configuration.tools import conf, problems, read

SECRET = "hunter2hunter2"


def test_the_password_is_hidden_wherever_settings_are_shown() -> None:
    resolved = read({"CONTACT_POINTS": "a", "USERNAME": "u", "PASSWORD": SECRET})
    assert resolved.settings.password == SECRET
    table = str(as_rows(resolved))
    shown = [repr(resolved), str(resolved.settings), table, json.dumps(as_json(resolved))]
    assert [SECRET in text for text in shown] == [False] * 4
    assert HIDDEN in table


@pytest.mark.parametrize(
    "text",
    [
        "password: *SECRET\n",
        "password: %SECRET\n",
        "password: !SECRET x\n",
        "password: 'SECRET\n",
        "password: SECRET: x\n",
        "password: [SECRET]\n",
        "password: {SECRET: 1}\n",
        "password:SECRET\n",
        "contact_points: a\npassword: 'SECRET'\n",
    ],
)
def test_no_complaint_about_a_file_quotes_the_password(text: str, tmp_path: Path) -> None:
    told = problems(directory=conf(tmp_path, text.replace("SECRET", SECRET)))
    assert told
    assert SECRET not in "\n".join(told)


def test_a_password_that_yaml_takes_for_a_number_is_not_quoted_either(tmp_path: Path) -> None:
    (problem,) = problems(directory=conf(tmp_path, "contact_points: a\nusername: u\npassword: 8675309\n"))
    assert "8675309" not in problem
    assert "put it in quotes" in problem


def test_the_password_file_is_the_password_without_its_line_break(tmp_path: Path) -> None:
    file = tmp_path / "password"
    for content in (SECRET, f"{SECRET}\n", f"{SECRET}\r\n"):
        file.write_bytes(content.encode())
        resolved = read({"CONTACT_POINTS": "a", "USERNAME": "u"}, password_file=str(file))
        assert resolved.settings.password == SECRET
        assert str(resolved.origins["password"]) == "--password-file"


def test_the_password_file_may_be_named_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(SECRET)
    text = f"contact_points: a\nusername: u\npassword_file: {tmp_path / 'password'}\n"
    assert read(directory=conf(tmp_path, text)).settings.password == SECRET


def test_the_higher_layer_has_the_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("by flag")
    environment = {"CONTACT_POINTS": "a", "USERNAME": "u", "PASSWORD": "by variable"}
    assert read(environment, password_file=str(tmp_path / "password")).settings.password == "by flag"
    directory = conf(tmp_path, f"password_file: {tmp_path / 'password'}\n")
    assert read(environment, directory).settings.password == "by variable"


def test_a_password_and_its_file_in_one_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(SECRET)
    environment = {"CONTACT_POINTS": "a", "USERNAME": "u", "PASSWORD": SECRET,
                   "ANGELHAIR_PASSWORD_FILE": str(tmp_path / "password")}
    assert problems(environment) == ("ANGELHAIR_PASSWORD_FILE: a password and a file with one were both given",)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff", "is not UTF-8"),
        (b"x" * (limits.PASSWORD_FILE_BYTES + 1), f"is larger than {limits.PASSWORD_FILE_BYTES} bytes"),
    ],
)
def test_a_password_file_that_has_none_is_named(content: bytes | None, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    told = problems({"CONTACT_POINTS": "a", "ANGELHAIR_USERNAME": "u"}, password_file=str(file))
    assert told == (f"--password-file: {str(file)!r} {complaint}",)


def test_a_password_without_a_user_is_a_mistake() -> None:
    assert problems({"CONTACT_POINTS": "a", "PASSWORD": SECRET}) == ("PASSWORD: is of no use without username",)


def test_an_address_with_a_user_in_it_is_refused_and_not_quoted() -> None:
    (otlp,) = problems(otlp_endpoint=f"https://u:{SECRET}@collector")
    (graphite,) = [one for one in problems({"METRICS_GRAPHITE": "true", "GRAPHITE_URL": f"u:{SECRET}@graphite"})
                   if one.startswith("GRAPHITE_URL")]
    for problem in (otlp, graphite):
        assert "its value has a user in it" in problem
        assert SECRET not in problem
