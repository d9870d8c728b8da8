"""`angelhair account` and `angelhair key`, on a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from angelhair.cli.main import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(tmp_path)
    return "--data", str(tmp_path / "data")


def said(capsys: Captured, *words: str, code: int = 0) -> tuple[list[list[str]], str]:
    """What a command prints, in fields, and what it complains."""
    assert main(list(words)) == code
    out, err = capsys.readouterr()
    return [line.split("\t") for line in out.splitlines()], err


@pytest.mark.parametrize("words", [
    ("account", "list"), ("account", "delete", "shop"), ("key", "list"), ("key", "disable", "K"),
    ("key", "enable", "K"), ("key", "delete", "K"),
])
def test_what_only_looks_or_changes_makes_no_store(
    capsys: Captured, tmp_path: Path, place: tuple[str, str], words: tuple[str, ...]
) -> None:
    _, err = said(capsys, *words, *place, code=1)
    program = " ".join(words[:2])
    assert err == f"angelhair {program}: there is no store in {place[1]}; --data says where it is\n"
    _, err = said(capsys, *words, code=1)
    assert err == f"angelhair {program}: there is no store in angelhair-data; --data says where it is\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("account", "create", "shop"), ("key", "create")])
def test_the_first_account_or_key_makes_the_store_and_says_so(
    capsys: Captured, tmp_path: Path, place: tuple[str, str], words: tuple[str, ...]
) -> None:
    program = " ".join(words[:2])
    _, err = said(capsys, *words, *place)
    assert err.startswith(f"angelhair {program}: there was no store in {place[1]}; a new one is made there\n")
    _, err = said(capsys, *words)
    assert err.startswith(f"angelhair {program}: there was no store in angelhair-data; a new one is made there\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["angelhair-data", "data"]
    _, err = said(capsys, "key", "create", *place)
    assert "a new one" not in err


def test_accounts_are_made_listed_and_deleted(capsys: Captured, place: tuple[str, str]) -> None:
    said(capsys, "account", "create", "fixed", "--id", "123456789012", *place)
    rows, _ = said(capsys, "account", "list", *place)
    assert ["000000000000", "default", "-"] in rows
    ((number,),), _ = said(capsys, "account", "create", "shop", *place)
    rows, _ = said(capsys, "account", "list", *place)
    assert {(row[0], row[1]) for row in rows} == {
        ("000000000000", "default"), (number, "shop"), ("123456789012", "fixed")
    }
    for words, complaint in (
        (("create", "shop"), "is the name of account"), (("delete", "default"), "cannot be deleted"),
        (("delete", "nobody"), "there is no account 'nobody'"), (("create", "x", "--id", "12"), "12 digits"),
    ):
        _, err = said(capsys, "account", *words, *place, code=1)
        assert complaint in err
    said(capsys, "account", "delete", "shop", *place)
    said(capsys, "account", "delete", "123456789012", *place)
    rows, _ = said(capsys, "account", "list", *place)
    assert len(rows) == 1


def test_a_keys_secret_is_shown_once(capsys: Captured, place: tuple[str, str]) -> None:
    said(capsys, "account", "create", "shop", *place)
    rows, _ = said(
        capsys, "key", "create", "--account", "shop", "--queues", "orders*, b", "--actions", "SendMessage", *place
    )
    (named,), (secret,) = rows
    assert named.startswith("AWS_ACCESS_KEY_ID=AHKI") and secret.startswith("AWS_SECRET_ACCESS_KEY=")
    key = named.partition("=")[2]
    rows, _ = said(capsys, "key", "list", *place)
    assert [row[:1] + row[2:5] for row in rows] == [[key, "true", "orders*,b", "SendMessage"]]
    assert secret.partition("=")[2] not in str(rows)
    said(capsys, "key", "create", *place)
    rows, _ = said(capsys, "key", "list", "--account", "default", *place)
    ((other, *rest),) = rows
    assert rest[:4] == ["000000000000", "true", "*", "*"]
    said(capsys, "key", "disable", key, *place)
    rows, _ = said(capsys, "key", "list", "--account", "shop", *place)
    assert rows[0][2] == "false"
    said(capsys, "key", "enable", key, *place)
    _, err = said(capsys, "key", "delete", key, *place)
    assert err == ""
    _, err = said(capsys, "key", "delete", other, *place)
    assert "it was the last one" in err
    for verb in ("disable", "enable", "delete"):
        _, err = said(capsys, "key", verb, key, *place, code=1)
        assert f"there is no access key '{key}'" in err


def test_mistakes_are_one_line(capsys: Captured, place: tuple[str, str]) -> None:
    _, err = said(capsys, "key", "create", "--actions", "SendMesage", *place, code=2)
    assert err == (
        "angelhair key create: --actions: there is no action 'SendMesage' (did you mean SendMessage?)\n"
    )
    _, err = said(capsys, "key", "create", "--account", "nobody", *place, code=1)
    assert "there is no account 'nobody'" in err
    _, err = said(capsys, "key", "create", "--contact-points", "x", *place, code=2)
    assert "a server has one store" in err


def test_other_addresses_are_served_without_open_once_there_is_a_key(
    capsys: Captured, place: tuple[str, str]
) -> None:
    """As `config` says; a server that starts is in tests/aws/keys."""
    _, err = said(capsys, "config", "--host", "0.0.0.0", *place, code=2)
    assert f"make one with `angelhair key create --data {place[1]}`, or start with --open" in err
    said(capsys, "key", "create", *place)
    _, err = said(capsys, "config", "--host", "0.0.0.0", *place)
    assert err == ""
    _, err = said(capsys, "config", "--host", "0.0.0.0", "--open", *place)
    assert err == "", "it is not open: it asks for keys"
