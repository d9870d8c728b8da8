"""How much a filter policy may be: the bounds of SNS, at which its clients expect a refusal."""

# --- filter policies --------------------------------------------------------------------------------------------------

FILTER_POLICY_BYTES = 262_144
"""A filter policy."""

FILTER_KEYS = 5
"""Keys in a filter policy, counted where they have values."""

FILTER_COMBINATIONS = 150
"""The product of how many values each key has, times how deep it is nested; alternatives are added up."""

FILTER_NUMBER_MAXIMUM = 1_000_000_000
FILTER_DECIMALS = 5
"""Numbers that are compared: up to a billion either side of zero, and so many digits behind the point."""

FILTER_DEPTH = 100
"""Objects in objects of a policy: combinations end it far sooner; this ends a walk that only alternatives make long."""

FILTER_POLICIES_REMEMBERED = 4_096
"""Policies that a server keeps parsed. A topic may have 200 of them at Amazon."""
