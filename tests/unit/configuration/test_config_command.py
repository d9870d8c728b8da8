"""`angelhair config`, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from angelhair.cli.main import main
from angelhair.server.configuration.fields import BY_NAME

SHOWN = [
    ("host", "127.0.0.1", "default"),
    ("port", "1001", "--port"),
    ("open", "false", "default"),
    ("workers", "1", "default"),
    ("tls_certificate", "-", "default"),
    ("tls_key", "-", "default"),
    ("stop_grace_seconds", "10", "default"),
    ("databag_sync_seconds", "30", "default"),
    ("public_url", "-", "default"),
    ("allow_private_endpoints", "false", "default"),
    ("data", "angelhair-data", "default"),
    ("log_level", "info", "default"),
    ("log_format", "text", "ANGELHAIR_LOG_FORMAT"),
    ("access_log", "false", "default"),
    ("application_name", "angelhair", "default"),
    ("use_metrics_graphite", "false", "default"),
    ("otlp_endpoint", "-", "default"),
]


@pytest.fixture(autouse=True)
def _nothing_said_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for field in BY_NAME.values():
        for name in field.variables:
            monkeypatch.delenv(name, raising=False)
    # In place of /data/conf, which may be there on somebody's machine.
    (tmp_path / "empty.yaml").write_text("")
    monkeypatch.setenv("ANGELHAIR_CONFIG", str(tmp_path / "empty.yaml"))


def test_a_table_of_what_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ANGELHAIR_LOG_FORMAT", "text")
    assert main(["config", "--port", "1001"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [tuple(line.split("\t")) for line in out.splitlines()] == SHOWN


def test_a_terminal_has_a_heading_and_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANGELHAIR_LOG_FORMAT", "text")
    monkeypatch.setattr("angelhair.cli.config.on_terminal", lambda stream: True)
    assert main(["config", "--port", "1001"]) == 0
    heading, first, *_ = lines = capsys.readouterr().out.splitlines()
    assert heading == "SETTING                  VALUE           FROM"
    assert first == "host                     127.0.0.1       default"
    assert [tuple(line.split()) for line in lines[1:]] == SHOWN


def test_on_cassandra_the_table_has_its_settings_and_what_is_ignored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("USERNAME", "alice")
    monkeypatch.setenv("SSL_PORT", "1")
    assert main(["config", "--contact-points", "a,b", "--keyspace", "k"]) == 0
    out, err = capsys.readouterr()
    shown = {line.split("\t")[0]: line.split("\t")[-1] for line in out.splitlines()}
    assert (shown["contact_points"], shown["keyspace"], shown["data_center"]) == (
        "--contact-points", "--keyspace", "default")
    assert not {"data", "ssl_port", "graphite_url"} & set(shown)
    assert err.splitlines() == [
        "angelhair config: ignored: USERNAME: comes without a PASSWORD and so may be the login name of this machine",
        "angelhair config: ignored: SSL_PORT: counts only with use_ssl",
    ]


def test_json_has_every_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text("workers: 2\n")
    assert main(["config", "--json", "--config", str(tmp_path / "a.yaml"), "--no-open"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["settings"]) == set(BY_NAME)
    assert (told["store"], told["file"], told["ignored"]) == ("embedded", str(tmp_path / "a.yaml"), [])
    assert told["settings"]["workers"] == {"value": 2, "layer": "file", "from": f"{tmp_path / 'a.yaml'}: workers"}
    assert told["settings"]["open"] == {"value": False, "layer": "flag", "from": "--open"}
    assert told["settings"]["port"] == {"value": 9324, "layer": "default", "from": None}
    assert told["settings"]["contact_points"]["value"] == []


def test_a_mistake_is_one_line_each_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--port", "x", "--workers", "0"]) == 2
    assert capsys.readouterr() == ("", (
        "angelhair config: --port: 'x' is not a whole number from 0 to 65535\n"
        "angelhair config: --workers: '0' is not a whole number from 1 to 64\n"
    ))


def test_what_serve_would_refuse_is_exit_2_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--host", "0.0.0.0"]) == 2
    assert "start with --open" in capsys.readouterr().err
    assert main(["config", "--host", "0.0.0.0", "--open"]) == 0
    assert capsys.readouterr().err.startswith("angelhair config: OPEN: no access keys")


def test_the_password_is_no_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--contact-points", "a", "--username", "u", "--password", "secret"]) == 2
    assert capsys.readouterr() == ("", (
        "angelhair config: --password: is no flag, because everybody on a machine sees the flags of its processes; use "
        "--password-file or the variable ANGELHAIR_PASSWORD\n"
    ))


def test_flags_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["config", "--keysp", "k"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --keysp k" in capsys.readouterr().err
