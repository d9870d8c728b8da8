"""Which characters a message may hold, against the production `Char` of XML 1.0 itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from angelhair.server.aws.characters import is_xml_text

CHAR = re.compile("[\x09\x0a\x0d\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text(text: str) -> None:
    assert is_xml_text(text.encode()) == (CHAR.fullmatch(text) is not None)


@pytest.mark.parametrize("code", [*range(0x100), 0xD7FF, 0xE000, *range(0xFFF0, 0x10010), 0x1FFFE, 0x1FFFF, 0x10FFFF])
def test_single_characters(code: int) -> None:
    text = f"a{chr(code)}b"
    assert is_xml_text(text.encode()) == (CHAR.fullmatch(text) is not None)
