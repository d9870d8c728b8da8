"""Filter policies: what each operator lets pass and what it stops, in attributes and in bodies; what is no policy."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from angelhair import limits
from angelhair.engine.topics.filters import BY_ATTRIBUTES, BY_BODY, InvalidFilterPolicy, accepts, check

STORE = {"store": ("String", "example_corp")}
PRICE = {"price": ("Number", "301.50")}
INTERESTS = {"interests": ("String.Array", '["soccer", "rugby", 7, true, null]')}

# By what a policy says of one key: the attributes that it lets pass, and those that it stops.
BY_ATTRIBUTE: list[tuple[list[Any], list[tuple[str, str]], list[tuple[str, str]]]] = [
    (["red", "blue"], [("String", "red"), ("String", "blue"), ("String.label", "red")],
     [("String", "Red"), ("String", ""), ("Number", "1")]),
    ([100], [("Number", "100"), ("Number", "100.0"), ("Number", "1e2"), ("Number.cents", "100.000001")],
     [("String", "100"), ("Number", "100.00001"), ("Number", "-100")]),
    ([{"prefix": "bas"}], [("String", "baseball"), ("String", "bas")], [("String", "rugby"), ("String", "Baseball")]),
    ([{"suffix": "ball"}], [("String", "baseball")], [("String", "ballroom"), ("Number", "1")]),
    ([{"equals-ignore-case": "TeNNis"}], [("String", "tennis"), ("String", "TENNIS")], [("String", "tennis ")]),
    ([{"wildcard": "*.example.*"}], [("String", "www.example.com"), ("String", ".example.")],
     [("String", "example.com")]),
    ([{"wildcard": "a*b*c"}], [("String", "abc"), ("String", "aXbYbc")], [("String", "acb"), ("String", "ab")]),
    ([{"wildcard": "50\\*\\\\*"}], [("String", "50*\\"), ("String", "50*\\more")], [("String", "50x")]),
    ([{"wildcard": "plain"}], [("String", "plain")], [("String", "plainer")]),
    ([{"wildcard": "aa*aa"}], [("String", "aaaa")], [("String", "aaa")]),
    ([{"anything-but": "rugby"}], [("String", "soccer"), ("Number", "1")], [("String", "rugby")]),
    ([{"anything-but": ["rugby", "tennis"]}], [("String", "soccer")], [("String", "rugby"), ("String", "tennis")]),
    ([{"anything-but": [100, 500]}], [("Number", "101")], [("Number", "100.0"), ("Number", "500")]),
    ([{"anything-but": {"prefix": "order-"}}], [("String", "data-entry")], [("String", "order-cancelled")]),
    ([{"anything-but": {"suffix": ["ball", "o"]}}], [("String", "rugby")],
     [("String", "baseball"), ("String", "polo")]),
    ([{"anything-but": {"equals-ignore-case": "A"}}], [("String", "b")], [("String", "a"), ("String", "A")]),
    ([{"anything-but": {"wildcard": "*x*"}}], [("String", "abc")], [("String", "axc")]),
    ([{"numeric": ["=", 301.5]}], [("Number", "301.50")], [("Number", "301.51"), ("String", "301.5")]),
    ([{"numeric": ["<", 0]}], [("Number", "-1"), ("Number", "-0.00001")], [("Number", "0")]),
    ([{"numeric": [">", 0, "<=", 150]}], [("Number", "150"), ("Number", "0.1")],
     [("Number", "0"), ("Number", "150.1")]),
    ([{"numeric": [">=", -1.5e2]}], [("Number", "-150"), ("Number", "3")], [("Number", "-151")]),
    ([{"cidr": "10.0.0.0/24"}], [("String", "10.0.0.255")], [("String", "10.0.1.0"), ("String", "no address")]),
    ([{"cidr": "2001:db8::/32"}], [("String", "2001:db8::1")], [("String", "10.0.0.1"), ("String", "2001:db9::1")]),
    ([{"exists": True}], [("String", "any"), ("Number", "9e99"), ("String.Array", "[1]")], []),
    ([{"prefix": "a"}, 7, "x"], [("String", "ab"), ("Number", "7"), ("String", "x")],
     [("String", "7"), ("Number", "8")]),
    (["soccer"], [("String.Array", '["rugby", "soccer"]')], [("String.Array", '["rugby"]'), ("String.Array", "[]")]),
    ([True], [("String.Array", "[true]")], [("String.Array", '["true"]'), ("String.Array", "[1]"), ("String", "true")]),
    ([None], [("String.Array", "[null]")], [("String.Array", "[]"), ("String", "null")]),
    ([{"anything-but": ["a"]}], [("String.Array", '["a", "b"]')], [("String.Array", '["a"]')]),
    ([{"anything-but": [1]}], [("Number", "9e99")], []),
]

# A policy, the bodies that it lets pass, and those that it stops.
BY_BODIES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"store": ["a"]}, [{"store": "a"}, {"store": ["b", "a"]}], [{"store": "b"}, {}, {"store": {"a": 1}}, [], "a", 5]),
    ({"on": [True]}, [{"on": True}], [{"on": "true"}, {"on": 1}]),
    ({"gone": [None]}, [{"gone": None}], [{}, {"gone": ""}]),
    ({"a": {"b": {"c": [5]}}}, [{"a": {"b": {"c": 5.0}}}], [{"a": {"b": 5}}, {"a": {"c": 5}}, {"a": 5}]),
    ({"a": {"b": [1], "c": [2]}}, [{"a": [{"b": 0}, {"b": 1, "c": 2}]}], [{"a": [{"b": 1, "c": 0}, {"b": 0, "c": 2}]}]),
    ({"a": {"b": [{"exists": False}]}}, [{}, {"a": {}}, {"a": {"c": 1}}, {"a": {"b": {}}}], [{"a": {"b": None}}]),
    ({"a": [{"exists": True}]}, [{"a": None}, {"a": 0}, {"a": [1]}], [{"a": {"b": 1}}, {"a": []}, {}]),
    ({"$or": [{"a": [1]}, {"b": [2]}]}, [{"a": 1}, {"b": 2}, {"a": 0, "b": 2}], [{"a": 2, "b": 1}, {}]),
    ({"c": [3], "$or": [{"a": [1]}, {"b": [2]}]}, [{"c": 3, "a": 1}], [{"a": 1}, {"c": 3}]),
    ({"x": {"$or": [{"a": [1]}, {"b": {"d": [2]}}]}}, [{"x": {"b": {"d": 2}}}, {"x": {"a": 1}}],
     [{"a": 1}, {"x": {"b": 2}}]),
    ({"$or": ["plain"]}, [{"$or": "plain"}], [{"a": 1}]),
    ({"$or": [{"prefix": "a"}, {"prefix": "b"}]}, [{"$or": "bc"}], [{"$or": "c"}]),
    ({"n": [{"numeric": [">", 1]}]}, [{"n": 2}, {"n": [0, 1.5]}], [{"n": "2"}, {"n": 1}, {"n": True}]),
    ({}, [{}, {"any": 1}], ["text"]),
]

WRONG: list[tuple[str, str]] = [
    ("{", "failed to parse JSON."),
    ('{"a": [NaN]}', "failed to parse JSON."),
    ("[]", "Filter is not an object"),
    ('{"a": "b"}', '"a" must be an object or an array'),
    ('{"a": []}', "Empty arrays are not allowed"),
    ('{"a": [["b"]]}', "Match value must be String, number, true, false, or null"),
    ('{"a": [{"suffixes": "b"}]}', "Unrecognized match type suffixes"),
    ('{"a": [{"prefix": "a", "suffix": "b"}]}', "Only one key allowed in match expression"),
    ('{"a": [{"prefix": 1}]}', "prefix match pattern must be a string"),
    ('{"a": [{"suffix": ""}]}', "suffix match pattern must not be empty"),
    ('{"a": [{"exists": "yes"}]}', "exists match pattern must be either true or false."),
    ('{"a": [{"numeric": 5}]}', "Value of numeric must be an array."),
    ('{"a": [{"numeric": []}]}', "Invalid member in numeric match: ]"),
    ('{"a": [{"numeric": [5, 5]}]}', "Invalid member in numeric match: 5"),
    ('{"a": [{"numeric": ["<"]}]}', "Value of < must be numeric"),
    ('{"a": [{"numeric": ["<", "5"]}]}', "Value of < must be numeric"),
    ('{"a": [{"numeric": ["~", 5]}]}', "Unrecognized numeric range operator: ~"),
    ('{"a": [{"numeric": ["<", 5, "<", 6]}]}', "Bad numeric range operator: <"),
    ('{"a": [{"numeric": [">", 5, ">", 6]}]}', "Bad numeric range operator: >"),
    ('{"a": [{"numeric": [">", 6, "<", 5]}]}', "Bottom must be less than top"),
    ('{"a": [{"numeric": ["=", 6, "<", 5]}]}', "Too many terms in numeric range"),
    ('{"a": [{"numeric": [">", 1, "<", 5, "<", 6]}]}', "Too many elements in numeric expression"),
    ('{"a": [1000000001]}', "Numeric values must be between -1000000000 and 1000000000 inclusive"),
    ('{"a": [{"anything-but": []}]}', "Empty arrays are not allowed"),
    ('{"a": [{"anything-but": ["b", 1]}]}',
     "Inside anything-but list, either all values are number or string, mixed type is not supported"),
    ('{"a": [{"anything-but": {"numeric": ["=", 1]}}]}', "Unsupported anything-but pattern: numeric"),
    ('{"a": [{"cidr": "10.0.0.0"}]}', "Malformed CIDR, one '/' required"),
    ('{"a": [{"cidr": "10.0.0/999"}]}', "Malformed CIDR, it is no network of addresses"),
    ('{"a": [{"wildcard": "a**b"}]}', "Consecutive wildcard characters are not allowed"),
    ('{"a": [{"wildcard": "a\\\\b"}]}', "Invalid escape character in a wildcard match pattern"),
    ('{"a": {"b": [1]}}', "Filter policy scope MessageAttributes does not support nested filter policy"),
    ('{"a": [1], "b": [1], "c": [1], "d": [1], "e": [1], "f": [1]}', "Filter policy can not have more than 5 keys"),
]


@pytest.mark.parametrize(("conditions", "passed", "stopped"), BY_ATTRIBUTE)
def test_a_condition_on_an_attribute(
    conditions: list[Any], passed: list[tuple[str, str]], stopped: list[tuple[str, str]]
) -> None:
    policy = json.dumps({"key": conditions})
    check(policy, BY_ATTRIBUTES)
    assert [value for value in passed if not accepts(policy, BY_ATTRIBUTES, {"key": value}, "")] == []
    assert [value for value in stopped if accepts(policy, BY_ATTRIBUTES, {"key": value}, "")] == []
    assert not accepts(policy, BY_ATTRIBUTES, {"other": ("String", "red")}, ""), "what is not there agrees with nothing"


@pytest.mark.parametrize(("policy", "passed", "stopped"), BY_BODIES)
def test_a_policy_on_a_body(policy: dict[str, Any], passed: list[Any], stopped: list[Any]) -> None:
    text = json.dumps(policy)
    check(text, BY_BODY)
    assert [body for body in passed if not accepts(text, BY_BODY, {}, json.dumps(body))] == []
    assert [body for body in stopped if accepts(text, BY_BODY, {}, json.dumps(body))] == []
    assert not accepts(text, BY_BODY, {}, "no JSON")


def test_all_keys_must_agree_and_no_policy_takes_everything() -> None:
    policy = '{"store": ["example_corp"], "price": [{"numeric": [">", 300]}], "interests": ["rugby"]}'
    assert accepts(policy, BY_ATTRIBUTES, {**STORE, **PRICE, **INTERESTS}, "")
    assert not accepts(policy, BY_ATTRIBUTES, {**STORE, **PRICE}, "")
    assert accepts(None, BY_BODY, {}, "no JSON")
    assert accepts("{}", BY_ATTRIBUTES, {}, "")


def test_what_is_not_there() -> None:
    policy = '{"store": [{"exists": false}]}'
    assert accepts(policy, BY_ATTRIBUTES, {}, "")
    assert not accepts(policy, BY_ATTRIBUTES, STORE, "")
    assert accepts(policy, BY_ATTRIBUTES, {"store": ("Binary", "AAAA")}, ""), "binary attributes are passed over"


def test_alternatives_in_attributes() -> None:
    policy = '{"store": ["example_corp"], "$or": [{"price": [{"numeric": ["<", 10]}]}, {"interests": ["rugby"]}]}'
    assert accepts(policy, BY_ATTRIBUTES, {**STORE, **INTERESTS}, "")
    assert not accepts(policy, BY_ATTRIBUTES, {**STORE, **PRICE}, "")


@pytest.mark.parametrize(("policy", "reason"), WRONG)
def test_what_is_no_policy(policy: str, reason: str) -> None:
    with pytest.raises(InvalidFilterPolicy, match=f"^{re.escape(reason)}$"):
        check(policy, BY_ATTRIBUTES)


def test_how_much_a_policy_may_be() -> None:
    def combined(*sizes: int) -> str:
        return json.dumps({f"key{n}": list(range(size)) for n, size in enumerate(sizes)})

    check(combined(3, 50), BY_ATTRIBUTES)
    check(combined(5, 5, 6), BY_ATTRIBUTES)
    for policy in (combined(151), combined(3, 51)):
        with pytest.raises(InvalidFilterPolicy, match=r"^Filter policy is too complex$"):
            check(policy, BY_ATTRIBUTES)
    deep = {"a": {"b": {"c": list(range(50))}}}
    check(json.dumps(deep), BY_BODY)
    deep["a"]["b"]["c"].append(50)
    with pytest.raises(InvalidFilterPolicy, match=r"^Filter policy is too complex$"):
        check(json.dumps(deep), BY_BODY)
    check(json.dumps({"$or": [{"a": list(range(75))}, {"b": list(range(75))}]}), BY_BODY)
    with pytest.raises(InvalidFilterPolicy, match=r"^Filter policy is too complex$"):
        check(json.dumps({"$or": [{"a": list(range(75))}, {"b": list(range(76))}]}), BY_BODY)
    with pytest.raises(InvalidFilterPolicy, match="longer than"):
        check(json.dumps({"a": ["x" * limits.FILTER_POLICY_BYTES]}), BY_BODY)
    with pytest.raises(InvalidFilterPolicy, match=r"^failed to parse JSON|nested too deeply$"):
        check('{"a":' * 3000 + "[1]" + "}" * 3000, BY_BODY)


def test_a_policy_of_a_later_version_stops_nothing() -> None:
    assert accepts('{"store": [{"sounds-like": "x"}]}', BY_ATTRIBUTES, STORE, "")


# --- for any policy and any message -----------------------------------------------------------------------------------

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["a", "b", "$or", "prefix", "numeric", "anything-but", "exists", "wildcard", "cidr"]),
        inner, max_size=4,
    ),
    max_leaves=20,
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["a", "b", "$or"]),
    st.tuples(st.sampled_from(["String", "Number", "String.Array", "Binary", "String.x"]), st.text(max_size=8)),
    max_size=3,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON_VALUES, ATTRIBUTES, JSON_VALUES)
def test_whatever_is_sent_is_refused_as_a_policy_or_has_an_answer(
    policy: Any, attributes: dict[str, tuple[str, str]], body: Any
) -> None:
    text = json.dumps(policy)
    for scope in (BY_ATTRIBUTES, BY_BODY):
        try:
            check(text, scope)
        except InvalidFilterPolicy:
            continue
        assert accepts(text, scope, attributes, json.dumps(body)) in (True, False)


@given(
    st.text(alphabet="ab*", max_size=8).filter(lambda text: text and "**" not in text),
    st.text(alphabet="ab", max_size=8),
)
def test_wildcards_agree_with_regular_expressions(pattern: str, text: str) -> None:
    policy = json.dumps({"key": [{"wildcard": pattern}]})
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
    assert accepts(policy, BY_ATTRIBUTES, {"key": ("String", text)}, "") == expected


@given(st.integers(-10**8, 10**8), st.integers(-10**8, 10**8), st.sampled_from(["=", "<", "<=", ">", ">="]))
def test_numbers_agree_with_arithmetic(thousandths: int, bound_thousandths: int, sign: str) -> None:
    policy = f'{{"key": [{{"numeric": ["{sign}", {bound_thousandths / 1000}]}}]}}'
    holds = {
        "=": thousandths == bound_thousandths, "<": thousandths < bound_thousandths,
        "<=": thousandths <= bound_thousandths, ">": thousandths > bound_thousandths,
        ">=": thousandths >= bound_thousandths,
    }[sign]
    assert accepts(policy, BY_ATTRIBUTES, {"key": ("Number", str(thousandths / 1000))}, "") == holds


@given(st.sampled_from(BY_ATTRIBUTE), st.sampled_from(BY_ATTRIBUTE))
def test_a_further_condition_stops_nothing_and_a_further_key_lets_nothing_more_pass(
    one: tuple[list[Any], list[tuple[str, str]], list[tuple[str, str]]],
    other: tuple[list[Any], list[tuple[str, str]], list[tuple[str, str]]],
) -> None:
    wider, narrower = json.dumps({"key": one[0] + other[0]}), json.dumps({"key": one[0], "more": other[0]})
    for value in [*one[1], *one[2]]:
        alone = accepts(json.dumps({"key": one[0]}), BY_ATTRIBUTES, {"key": value}, "")
        assert accepts(wider, BY_ATTRIBUTES, {"key": value}, "") >= alone
        assert accepts(narrower, BY_ATTRIBUTES, {"key": value, "more": other[1][0]}, "") == alone
        assert not accepts(narrower, BY_ATTRIBUTES, {"key": value}, "")
