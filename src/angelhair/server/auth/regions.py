"""Regions make no difference. A client chooses any, and a queue is the same in all of them: a denial that went by the
region would be dodged by naming another."""

from __future__ import annotations

ARN, ARN_PARTS, REGION_PART = "arn", 6, 3


def in_region_of(pattern: str, arn: str) -> str:
    """The ARN as it would be in the region that the pattern has. What is no ARN stays as it is."""
    parts, wanted = arn.split(":", ARN_PARTS - 1), pattern.split(":", ARN_PARTS - 1)
    if len(parts) == len(wanted) == ARN_PARTS and parts[0] == wanted[0] == ARN:
        parts[REGION_PART] = wanted[REGION_PART]
    return ":".join(parts)
