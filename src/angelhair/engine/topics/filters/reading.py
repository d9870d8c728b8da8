"""JSON as filter policies read it: numbers are exact."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

MISSING = object()
"""Not there at all, unlike a null."""


def decoded(text: str) -> Any:
    """`MISSING` when it is no JSON."""
    try:
        return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return MISSING


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
