"""The audit log's bound: whoever has no key cannot fill a disk."""

from __future__ import annotations

import logging
from base64 import b64encode

import pytest

from angelhair import limits
from angelhair.server.audit import Audit, claimed_key
from angelhair.server.http.messages import Request


def request(authorization: str = "", query: str = "") -> Request:
    headers = {"authorization": authorization} if authorization else {}
    return Request("GET", "/", query, headers, b"", "id", "10.0.0.1", False, True)


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


def test_refusals_beyond_a_bound_are_counted(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(limits, "AUDIT_REFUSALS", 3)
    audit, signed = Audit(), request()
    signed.key = "AHKI1"
    for _ in range(10):
        audit.refused(request(), "SendMessage", "AccessDenied")
        audit.administered(signed, "CreateQueue", "done")
        audit.administered(request(), "DeleteQueue", "done")
    assert [record.getMessage() for record in caplog.records].count("refused SendMessage: AccessDenied") == 3
    assert [record.getMessage() for record in caplog.records].count("CreateQueue: done") == 10
    assert "DeleteQueue" not in caplog.text, "where nobody signs, nobody can be named"
    caplog.clear()
    monkeypatch.setattr(limits, "AUDIT_SECONDS", 0)
    audit.refused(request(), "SendMessage", "AccessDenied")
    assert [record.getMessage() for record in caplog.records] == [
        "7 more requests were refused, and not written one by one", "refused SendMessage: AccessDenied",
    ]


def test_what_a_client_makes_up_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    Audit().refused(request(), "x" * 10_000, "AccessDenied")
    (record,) = caplog.records
    assert len(record.getMessage()) < 200 and len(record.__dict__["action"]) == 80


@pytest.mark.parametrize(("authorization", "query", "key"), [
    ("AWS4-HMAC-SHA256 Credential=AHKI1/20261116/us-east-1/sqs/aws4_request, SignedHeaders=host", "", "AHKI1"),
    ("", "Action=x&X-Amz-Credential=AHKI1%2F20261116%2Fus-east-1&X-Amz-Date=1", "AHKI1"),
    (basic("AHKIAJ4EXAMPLE234567", "secret"), "", "AHKIAJ4EXAMPLE234567"),
    (basic("AHKIAJ4EXAMPLE234567", "secret").replace("Basic", "bASIC"), "", "AHKIAJ4EXAMPLE234567"),
    (basic("AHKIAJ4EXAMPLE234567", "a:b"), "X-Amz-Credential=AHKI1/", "AHKIAJ4EXAMPLE234567"),
    # The two of them swapped, by somebody who had them on two lines; and an id with a line of the log behind it.
    (basic("AHKI" + "S" * 36, "AHKIAJ4EXAMPLE234567"), "", None), (basic("AHKIAJ4EXAMPLE234567\n", "x"), "", None),
    ("", "", None), (basic("AHKI1", "secret"), "", None),
    ("Basic /w==", "", None), ("Basic !", "", None), ("AWS4-HMAC-SHA256 Credential=a b/2026", "", None),
    (f"AWS4-HMAC-SHA256 Credential={'a' * 200}/2026", "", None),
])
def test_the_key_that_a_request_names(authorization: str, query: str, key: str | None) -> None:
    assert claimed_key(request(authorization, query)) == key
