"""The forms of ids and of message attributes, which SQS and SNS share."""

from __future__ import annotations

import re

from angelhair import limits

ENTRY_ID = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.AWS_ENTRY_ID_LENGTH}}}", re.ASCII)
"""Of an entry in a batch."""

GROUP_ID = re.compile(rf"[!-~]{{1,{limits.AWS_GROUP_ID_LENGTH}}}", re.ASCII)
"""The one form of message group ids, deduplication ids and receive attempt ids."""

LABEL = re.compile(rf"[A-Za-z0-9_-]{{1,{limits.AWS_LABEL_LENGTH}}}", re.ASCII)
"""Of a permission."""

ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
ATTRIBUTE_TYPE = re.compile(r"(String|Number|Binary)(?:\..+)?", re.DOTALL)
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
RESERVED = ("aws.", "amazon.")
"""What the names of message attributes must not begin with, in whatever case."""
