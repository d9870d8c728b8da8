"""Forms of text that are published: in paths, parameters and JSON alike."""

from __future__ import annotations

from angelhair.engine import receipts
from angelhair.engine.timeline import receipts as timeline_receipts

NAME_PATTERN = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
"""A queue's name; `model.validate_name` is the judge."""

NAME_WORDS = "may hold letters a to z and A to Z, digits, '_', '-' and '.', and begins with none of '-' and '.'"
"""The judge's own."""

PART_PATTERN = "^[A-Za-z0-9_.-]*$"
"""The beginning of a name."""

EXAMPLE_RECEIPT = receipts.encode("51" * 16, b"an example", 0, 17, 1)
_LONGER = timeline_receipts.LENGTH - receipts.LENGTH
RECEIPT_PATTERN = f"^(?:[A-Za-z0-9_-]{{{receipts.LENGTH}}}([A-Za-z0-9_-]{{{_LONGER}}})?|0-(?:0|[1-9][0-9]{{0,18}}))$"
"""What `engine.receipts` writes: base64 for URLs, always of one length; those of timelines are longer. A message of a
databag has its id in its place."""

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
ID_PATTERN = f"^(0|[1-9][0-9]*)-(0|[1-9][0-9]*|{_UUID})$"
"""A lane and a number; of a timeline a shard and the UUID of a due time."""

# Years and days exactly, leap days too (between 1970 and 2099 every fourth year has one): the pattern is published, and
# a client that keeps to it is never refused.
_DAY = (
    "(?:(?:19[7-9][0-9]|20[0-9]{2})-"
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:19(?:7[26]|8[048]|9[26])|20(?:[02468][048]|[13579][26]))-02-29)"
)
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
DUE_PATTERN = f"^{_DAY}[Tt]{_TIME}$"

DUE_WORDS = "must be RFC 3339 such as 2026-11-15T13:00:00Z, or seconds since 1970; from 1970 on, and before 2100"

IN_WORDS = {NAME_PATTERN: NAME_WORDS, DUE_PATTERN: DUE_WORDS}
"""What is said to whoever did not keep to a pattern."""
