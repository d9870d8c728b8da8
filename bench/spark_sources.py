"""Sources that ours is measured beside: the same one yielding tuples, and a stream that has nothing to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from angelhair.spark.options import ReadOptions
from angelhair.spark.source import AngelhairDataSource, QueueReader

TUPLES, NOTHING = "angelhair-tuples", "nothing"


class TupleReader(QueueReader):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        for batch in super().read(partition):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


class TupleSource(AngelhairDataSource):
    """Our source, but for the form in which the rows leave Python."""

    @classmethod
    def name(cls) -> str:
        return TUPLES

    def reader(self, schema: StructType) -> DataSourceReader:
        return TupleReader(ReadOptions.of(self.options, pushdown=False))


class NothingReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - the names are Spark's, here and below
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802
        return {"at": start["at"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return iter(())

    def commit(self, end: dict[str, int]) -> None:
        """Nothing."""


class NothingSource(DataSource):
    """A stream of batches without a row: what Spark itself takes for a batch of a source that is written in Python."""

    @classmethod
    def name(cls) -> str:
        return NOTHING

    def schema(self) -> str:
        return "number bigint, body binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return NothingReader()
