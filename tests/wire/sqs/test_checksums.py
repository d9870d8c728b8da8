"""Checksums, against values that AWS itself gave and against its algorithm, written here a second time."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angelhair.server.aws.shape import MessageAttributeValue
from angelhair.server.sqs.checksums import md5_of_attributes, md5_of_body


def text(value: str, data_type: str = "String") -> MessageAttributeValue:
    return MessageAttributeValue(data_type, string_value=value)


def raw(value: bytes, data_type: str = "Binary") -> MessageAttributeValue:
    return MessageAttributeValue(data_type, binary_value=value)


def algorithm(attributes: dict[str, MessageAttributeValue]) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    for name, value in sorted(attributes.items()):
        for part in (name.encode(), value.data_type.encode()):
            digest.update(struct.pack("!I", len(part)) + part)
        if value.binary_value is not None:
            digest.update(struct.pack("!bI", 2, len(value.binary_value)) + value.binary_value)
        else:
            assert value.string_value is not None
            encoded = value.string_value.encode()
            digest.update(struct.pack("!bI", 1, len(encoded)) + encoded)
    return digest.hexdigest()


@pytest.mark.parametrize(("body", "checksum"), [
    ("msg", "6e2baaf3b97dbeef01c0043275f9a0e7"),
    ("test", "098f6bcd4621d373cade4e832627b4f6"),
    ("message-body-1", "19c9e282d65f9733bc6b35d50062c7ee"),
    ("g1-m1", "fc4286b824b39ddf3606c9f27ff664bd"),
])
def test_bodies_as_recorded_from_aws(body: str, checksum: str) -> None:
    assert md5_of_body(body.encode()) == checksum


@pytest.mark.parametrize(("attributes", "checksum"), [
    ({"Hello": text("There"), "General": text("Kenobi"), "Help.Me": text("Me")}, "4c360f3fdafd970e05fae2f149d997f5"),
    ({"Hello": text("There"), "General": text("Kenobi")}, "fca026605781cb4126a1e9044df24232"),
    ({"Hello": text("There"), "Help.Me": text("Me")}, "83fee93c1bcd8b9a5a923ffacdc636c7"),
    ({"Hello": text("There")}, "a311262e065454b75da111d535b8dacd"),
    ({"Foo": text("Bar")}, "ae7155c6026991b6d54b11589678bf9c"),
    (
        {"attr1": raw(b"traceparent\x1e00-774062d6c37081a5a0b9b5b88e30627c-2d2482211f6489da-01")},
        "8cbe4db156db8a94db8b801b7addb984",
    ),
    ({"UserId": text("1234567890123456789012", "Number.bigint")}, "797ab158d73dcb5242dedc4412c8e855"),
    ({"AWSTraceHeader": text("some-trace-id")}, "fdce4f2818803f2f73becc09a54792c0"),
])
def test_attributes_as_recorded(attributes: dict[str, MessageAttributeValue], checksum: str) -> None:
    assert md5_of_attributes(attributes) == checksum == algorithm(attributes)


_TYPES = st.sampled_from(["", ".custom", ".é"])
_VALUES = st.one_of(
    st.builds(lambda value, label: text(value, "String" + label), st.text(), _TYPES),
    st.builds(lambda value, label: text(str(value), "Number" + label), st.integers(), _TYPES),
    st.builds(lambda value, label: raw(value, "Binary" + label), st.binary(), _TYPES),
)


@given(st.dictionaries(st.text(), _VALUES, min_size=1))
def test_attributes_by_the_algorithm(attributes: dict[str, MessageAttributeValue]) -> None:
    assert md5_of_attributes(attributes) == algorithm(attributes)
