"""How the engine's tables look in CQL.

    CREATE TABLE <name> (partition text, key bigint|text, <flags> static, <columns>, PRIMARY KEY (partition, key))

Two columns are the store's own. Conditional tables have `nothing` (and `no_flag`, if they have flags), which are never
set: a change that expects nothing still has to be conditional, so it is made on `nothing = null`; a row that is only
tested needs something to assign, so it sets `nothing` to null. Plain tables have the static `written`, set with every
batch: its write time is the newest of the partition, which a drop must exceed (R14), found without reading the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from angelhair.engine.store import Partition, Table, Values

NEVER_SET = "nothing"
NEVER_SET_FLAG = "no_flag"
WRITTEN = "written"
OWN_COLUMNS = frozenset({"partition", "key", NEVER_SET, NEVER_SET_FLAG, WRITTEN})

CQL_TYPES: Mapping[type, str] = {int: "bigint", str: "text", bytes: "blob"}


def column_types(table: Table) -> dict[str, str]:
    """Every column beside the primary key, with its CQL type."""
    clash = OWN_COLUMNS & (table.columns.keys() | table.flags.keys())
    if clash:
        raise ValueError(f"table {table.name} uses names that this store keeps for itself: {', '.join(sorted(clash))}")
    types = {name: f"{CQL_TYPES[kind]} static" for name, kind in table.flags.items()}
    types |= {name: CQL_TYPES[kind] for name, kind in table.columns.items()}
    if table.conditional:
        types[NEVER_SET] = "boolean"
        if table.flags:
            types[NEVER_SET_FLAG] = "boolean static"
    else:
        types[WRITTEN] = "boolean static"
    return types


def present(names: tuple[str, ...], values: tuple[Any, ...]) -> Values:
    """What was read, without the columns that are not set."""
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def in_words(partition: Partition) -> str:
    return f"{partition.table.name}/{partition.key}"
