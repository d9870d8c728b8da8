"""Policies: what they allow, deny and do not speak of; and that what is not understood lets nobody in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angelhair.server.auth.policies import Verdict, Wish, judge

OWNER, OTHER, THIRD = "111111111111", "222222222222", "333333333333"
QUEUE = f"arn:aws:sqs:us-east-1:{OWNER}:orders"
ALLOWED, DENIED, SILENT = Verdict.ALLOWED, Verdict.DENIED, Verdict.SILENT

CIRCUMSTANCES = {
    "aws:sourceip": "10.1.2.3", "aws:securetransport": "false", "aws:currenttime": "1794830400.000",
    "aws:principalaccount": OTHER, "aws:principalarn": f"arn:aws:iam::{OTHER}:user/AHKI1", "aws:useragent": "Boto3/1.2",
}
"""The time is the 16th of November 2026, noon."""


def wish(action: str = "SendMessage", account: str | None = OTHER, resource: str = QUEUE, **more: Any) -> Wish:
    circumstances = {**CIRCUMSTANCES, **more.pop("circumstances", {})}
    return Wish(account, f"arn:aws:iam::{account}:user/AHKI1", f"sqs:{action}", resource, circumstances, **more)


def statement(**changes: Any) -> dict[str, Any]:
    whole = {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": QUEUE, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def policy(*statements: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@pytest.mark.parametrize(("changes", "verdict"), [
    ({}, ALLOWED),
    ({"Principal": {"AWS": OTHER}}, ALLOWED),
    ({"Principal": {"AWS": [THIRD, f"arn:aws:iam::{OTHER}:root"]}}, ALLOWED),
    ({"Principal": {"AWS": f"arn:aws:iam::{OTHER}:user/AHKI1"}}, ALLOWED),
    ({"Principal": {"AWS": f"arn:aws:iam::{OTHER}:user/AHKI2"}}, SILENT),
    ({"Principal": {"AWS": "*"}}, ALLOWED),
    ({"Principal": {"AWS": THIRD}}, SILENT),
    ({"Principal": {"AWS": OTHER[:-1]}}, SILENT),
    ({"Principal": {"AWS": f"{OTHER[:-1]}*"}}, SILENT),
    ({"Principal": {"Service": "sns.amazonaws.com"}}, SILENT),
    ({"Principal": {"Service": "sns.amazonaws.com", "AWS": OTHER}}, ALLOWED),
    ({"Principal": OTHER}, SILENT),
    ({"Principal": None}, SILENT),
    ({"Principal": None, "NotPrincipal": {"AWS": THIRD}}, ALLOWED),
    ({"Principal": None, "NotPrincipal": {"AWS": OTHER}}, SILENT),
    ({"NotPrincipal": {"AWS": THIRD}}, SILENT),
    ({"Action": "SQS:sendmessage"}, ALLOWED),
    ({"Action": "sqs:Send*"}, ALLOWED),
    ({"Action": "sqs:?endMessage"}, ALLOWED),
    ({"Action": ["sqs:ReceiveMessage", "sqs:*"]}, ALLOWED),
    ({"Action": "*"}, ALLOWED),
    ({"Action": "SendMessage"}, SILENT),
    ({"Action": "sns:*"}, SILENT),
    ({"Action": "sqs:ReceiveMessage"}, SILENT),
    ({"Action": None}, SILENT),
    ({"Action": None, "NotAction": "sqs:ReceiveMessage"}, ALLOWED),
    ({"Action": None, "NotAction": ["sqs:Send*"]}, SILENT),
    ({"Resource": "*"}, ALLOWED),
    ({"Resource": f"arn:aws:sqs:eu-west-1:{OWNER}:orders"}, ALLOWED),
    ({"Resource": f"arn:aws:sqs:*:{OWNER}:ord*"}, ALLOWED),
    ({"Resource": f"arn:aws:sqs:us-east-1:{OWNER}:Orders"}, SILENT),
    ({"Resource": f"arn:aws:sqs:us-east-1:{OTHER}:orders"}, SILENT),
    ({"Resource": f"arn:aws:sns:us-east-1:{OWNER}:orders"}, SILENT),
    ({"Resource": [f"{QUEUE}2", QUEUE]}, ALLOWED),
    ({"Resource": None}, SILENT),
    ({"Resource": None, "NotResource": f"{QUEUE}2"}, ALLOWED),
    ({"Resource": None, "NotResource": QUEUE}, SILENT),
    ({"Effect": "Deny"}, DENIED),
    ({"Effect": "Deny", "Principal": {"AWS": THIRD}}, SILENT),
    ({"Effect": "allow"}, DENIED),
    # A denial that is not understood denies; a permission that is not understood is none.
    ({"Effect": "Deny", "Principal": None}, DENIED),
    ({"Effect": "Deny", "Resource": 5}, DENIED),
    ({"Effect": "Deny", "Action": None, "NotAction": {"x": 1}}, DENIED),
    ({"Action": None, "NotAction": {"x": 1}}, SILENT),
    ({"Principal": {"AWS": 5}}, SILENT),
])
def test_one_statement(changes: dict[str, Any], verdict: Verdict) -> None:
    assert judge(policy(statement(**changes)), wish()) is verdict
    assert judge(json.dumps({"Statement": statement(**changes)}), wish()) is verdict


@pytest.mark.parametrize(("condition", "holds"), [
    ({"StringEquals": {"aws:PrincipalAccount": OTHER}}, True),
    ({"StringEquals": {"AWS:PRINCIPALACCOUNT": [THIRD, OTHER]}}, True),
    ({"StringEquals": {"aws:PrincipalAccount": THIRD}}, False),
    ({"StringNotEquals": {"aws:PrincipalAccount": THIRD}}, True),
    ({"StringNotEquals": {"aws:PrincipalAccount": [THIRD, OTHER]}}, False),
    ({"StringLike": {"aws:UserAgent": "Boto?/*"}}, True),
    ({"StringLike": {"aws:UserAgent": "boto*"}}, False),
    ({"StringEqualsIgnoreCase": {"aws:UserAgent": "BOTO3/1.2"}}, True),
    ({"StringNotLike": {"aws:UserAgent": "boto*"}}, True),
    ({"ArnEquals": {"aws:PrincipalArn": f"arn:aws:iam::{OTHER}:user/*"}}, True),
    ({"ArnLike": {"aws:PrincipalArn": f"arn:aws:iam::{THIRD}:*"}}, False),
    ({"ArnEquals": {"aws:SourceArn": "arn:aws:sns:*:*:news"}}, False),
    ({"ArnNotEquals": {"aws:SourceArn": "arn:aws:sns:*:*:news"}}, True),
    ({"ArnEqualsIfExists": {"aws:SourceArn": "arn:aws:sns:*:*:news"}}, True),
    ({"Null": {"aws:SourceArn": "true"}}, True),
    ({"Null": {"aws:SourceArn": False}}, False),
    ({"Null": {"aws:SourceIp": "false"}}, True),
    ({"Bool": {"aws:SecureTransport": "false"}}, True),
    ({"Bool": {"aws:SecureTransport": True}}, False),
    ({"Bool": {"aws:SecureTransport": "perhaps"}}, None),
    ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, True),
    ({"IpAddress": {"aws:SourceIp": ["192.168.0.0/16", "10.1.2.3"]}}, True),
    ({"IpAddress": {"aws:SourceIp": "2001:db8::/32"}}, False),
    ({"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, False),
    ({"IpAddress": {"aws:SourceIp": "ten"}}, None),
    ({"DateLessThan": {"aws:CurrentTime": "2026-12-01T00:00:00Z"}}, True),
    ({"DateLessThan": {"aws:CurrentTime": "2026-11-16"}}, False),
    ({"DateGreaterThan": {"aws:CurrentTime": "2026-11-16T11:00:00Z"}}, True),
    ({"DateGreaterThanEquals": {"aws:CurrentTime": 1794830400}}, True),
    ({"DateLessThan": {"aws:CurrentTime": "tomorrow"}}, None),
    ({"StringEquals": {"aws:PrincipalOrgID": "o-1"}}, None),
    ({"NumericLessThan": {"aws:SourceIp": "1"}}, None),
    ({"ForAnyValue:StringEquals": {"aws:PrincipalAccount": OTHER}}, None),
    ({"StringEquals": {"aws:PrincipalAccount": {"x": 1}}}, None),
    ({"StringEquals": "x"}, None),
    ("x", None),
    ({}, True),
    # All have to hold; what surely does not hold outweighs what is not understood.
    ({"StringEquals": {"aws:PrincipalAccount": OTHER, "aws:UserAgent": "Boto3/1.2"}}, True),
    ({"StringEquals": {"aws:PrincipalAccount": OTHER}, "Bool": {"aws:SecureTransport": "true"}}, False),
    ({"StringEquals": {"aws:PrincipalOrgID": "o-1"}, "Bool": {"aws:SecureTransport": "true"}}, False),
])
def test_conditions(condition: Any, holds: bool | None) -> None:
    """None: it is not understood, which no permission survives and every denial."""
    allowing, denying = policy(statement(Condition=condition)), policy(statement(Condition=condition, Effect="Deny"))
    assert judge(allowing, wish()) is (ALLOWED if holds else SILENT)
    assert judge(denying, wish()) is (SILENT if holds is False else DENIED)


def test_an_older_address_inside_a_newer_one_is_the_older() -> None:
    said = policy(statement(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}))
    assert judge(said, wish(circumstances={"aws:sourceip": "::ffff:10.1.2.3"})) is ALLOWED


def test_a_denial_outweighs_every_permission_wherever_it_stands() -> None:
    denial = statement(Effect="Deny", Action="sqs:DeleteMessage")
    for statements in ([statement(Action="*"), denial], [denial, statement(Action="*")]):
        assert judge(policy(*statements), wish("DeleteMessage")) is DENIED
        assert judge(policy(*statements), wish("SendMessage")) is ALLOWED


def test_a_service_is_let_in_by_its_name_and_its_source() -> None:
    """What a topic of SNS needs to reach a queue of another account."""
    said = policy(statement(
        Principal={"Service": "sns.amazonaws.com"},
        Condition={"ArnEquals": {"aws:SourceArn": f"arn:aws:sns:us-east-1:{OTHER}:news"}},
    ))
    for source, verdict in (("news", ALLOWED), ("other", SILENT)):
        circumstances = {"aws:sourcearn": f"arn:aws:sns:us-east-1:{OTHER}:{source}"}
        sent = Wish(None, "", "sqs:SendMessage", QUEUE, circumstances, "sns.amazonaws.com")
        assert judge(said, sent) is verdict
        assert judge(policy(statement(Principal={"AWS": "*"})), sent) is SILENT


@pytest.mark.parametrize("operator", ["ArnEquals", "ArnLike", "StringEquals", "StringLike", "StringEqualsIgnoreCase"])
@pytest.mark.parametrize("name", ["aws:SourceArn", "sns:Endpoint"])
def test_regions_make_no_difference_in_conditions(operator: str, name: str) -> None:
    """A client chooses any: a denial that went by the region would be dodged by naming another."""
    for region in ("us-east-1", "eu-west-1", ""):
        for source, fits in (("news", True), ("other", False)):
            said = {operator: {name: f"arn:aws:sns:us-east-1:{OTHER}:{source}"}}
            asked = wish(circumstances={name.lower(): f"arn:aws:sns:{region}:{OTHER}:news"})
            assert judge(policy(statement(Condition=said)), asked) is (ALLOWED if fits else SILENT)
            assert judge(policy(statement(Condition=said, Effect="Deny")), asked) is (DENIED if fits else SILENT)
            unless = {operator.replace("Like", "NotLike").replace("Equals", "NotEquals"): said[operator]}
            assert judge(policy(statement(Condition=unless, Effect="Deny")), asked) is (SILENT if fits else DENIED)


def test_what_is_no_arn_is_compared_letter_for_letter() -> None:
    for endpoint, fits in (("https://a:b:c:d:e:f", True), ("https://a:b:x:d:e:f", False)):
        said = policy(statement(Condition={"StringEquals": {"sns:Endpoint": "https://a:b:c:d:e:f"}}))
        assert judge(said, wish(circumstances={"sns:endpoint": endpoint})) is (ALLOWED if fits else SILENT)


@pytest.mark.parametrize("text", ["", "x", "5", "[]", '{"Statement": 5}', '{"Statement": ["x"]}', "[" * 100_000])
def test_a_policy_that_cannot_be_read_denies(text: str) -> None:
    assert judge(text, wish()) is DENIED


PARTS = ("Principal", "Action", "Resource")
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["*", "sqs:*", OTHER, QUEUE, "Allow", "Deny", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["AWS", "Service", "Bool", "StringEquals", "IpAddress", "DateLessThan", "aws:SourceIp", "x"]),
        inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(
    st.sampled_from(["Effect", "Condition", *PARTS, *(f"Not{name}" for name in PARTS)]), _JSON, max_size=6,
))
def test_whatever_a_statement_is_it_is_judged_and_only_a_whole_one_allows(said: dict[str, Any]) -> None:
    verdict = judge(policy(said), wish())
    whole = all(said.get(name) is not None or said.get(f"Not{name}") is not None for name in PARTS)
    assert verdict is not ALLOWED or (said.get("Effect") == "Allow" and whole)
