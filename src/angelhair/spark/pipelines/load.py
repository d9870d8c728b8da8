"""load: any table that Spark can read goes to a queue, each row once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from angelhair.engine import catalog
from angelhair.errors import InvalidRequest, QueueNotFound
from angelhair.spark.looking import Looking
from angelhair.spark.place import Place
from angelhair.spark.writing.rows import WRITTEN, written_to


@dataclass
class Loaded:
    queue: str
    name: str
    rows: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def mapped(table: DataFrame, columns: Mapping[str, str], kind: str) -> DataFrame:
    """The columns of a message, each an SQL expression over the table's; those of the same name by themselves, if a
    queue of this kind takes them."""
    for name in columns:
        if name not in WRITTEN:
            raise InvalidRequest("column", f"{name!r} is none that can be written; there are {', '.join(WRITTEN)}")
    found = {name: name for name in written_to(kind) if name in table.columns} | dict(columns)
    if "body" not in found:
        raise InvalidRequest(
            "column", f"body is missing: which of {', '.join(table.columns)} is it? to_json(struct(*)) takes all"
        )
    return table.select(*(f.expr(expression).alias(name) for name, expression in found.items()))


def load(
    table: DataFrame, place: Place, account: str, queue: str, name: str, columns: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> Loaded:
    """`name`: a load that is run again under the same name, with the same rows, puts nothing twice."""
    counted = Observation()
    rows = mapped(table, columns, _kind(place, account, queue)).observe(counted, f.count(f.lit(1)).alias("rows"))
    where = {**place.as_options(), "account": account, "queue": queue, "writeId": name, **(options or {})}
    rows.write.format("angelhair").mode("append").options(**where).save()
    return Loaded(queue, name, int(counted.get["rows"]))


def _kind(place: Place, account: str, queue: str) -> str:
    with Looking(place) as looking:
        found = looking.run(lambda store: catalog.load(store, account, queue))
    if found is None:
        raise QueueNotFound(account, queue)
    return found.settings.kind


def table_of(spark: SparkSession, source: str, kind: str, options: Mapping[str, str]) -> DataFrame:
    """A file or folder of that kind, or a table that the session knows by name."""
    reader = spark.read.options(**options)
    return reader.table(source) if kind == "table" else reader.format(kind).load(source)
