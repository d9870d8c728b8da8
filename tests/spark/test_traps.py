"""What Spark does that one has to know, and that this package must not fall into: each trap by its number.

Trap 5, of what a stream writes, is with the tests of the sink.
"""

from __future__ import annotations

import inspect
import os
import pickle
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

import angelhair.spark
from angelhair.model import NewMessage
from angelhair.settings import ACCOUNT
from angelhair.spark.columns import PAYLOADS, RAW, READ_COLUMNS, arrow_schema_of, raw_names, schema_of
from angelhair.spark.options import PUSHDOWN, ReadOptions
from angelhair.spark.source import AngelhairDataSource, FilteringDataSource, QueueReader
from angelhair.spark.stream import QueueStreamReader
from tests.spark.live import QUICK, Live, elsewhere, numbers, read_options, table


def schemas_read(reader: DataSourceReader, partition: InputPartition) -> list[pa.Schema]:
    return [batch.schema for batch in reader.read(partition)]  # type: ignore[union-attr]


def all_schemas_read(sent: list[tuple[DataSourceReader, InputPartition]]) -> list[list[pa.Schema]]:
    return [schemas_read(reader, partition) for reader, partition in sent]


def test_trap_1_filters_are_taken_only_where_the_session_allows_it(spark: SparkSession, live: Live) -> None:
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"x")] * 20)
    assert spark.conf.get(PUSHDOWN) == "true"
    spark.conf.set(PUSHDOWN, "false")
    try:
        with pytest.raises(PySparkException, match="DATA_SOURCE_PUSHDOWN_DISABLED"):
            table(spark, live, queue).where("bucket = 1").collect()
        assert numbers(table(spark, live, queue, pushdown="false").where("bucket = 1")) == list(range(10, 20))
    finally:
        spark.conf.set(PUSHDOWN, "true")


def test_trap_2_only_the_columns_of_the_schema_are_read(live: Live) -> None:
    assert raw_names(("number",)) == ("number",)
    assert not {"body", "changed_body", "attributes"}.intersection(raw_names(("id", "state", "enqueued_at")))
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"x")] * 5)
    source = FilteringDataSource({name.lower(): value for name, value in {**live.options, "queue": queue}.items()})
    reader = source.reader(schema_of(("state", "number"), "binary"))
    (schema,) = elsewhere(schemas_read, reader, reader.partitions()[0])
    assert schema.names == ["state", "number"]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_trap_3_types_in_arrow_are_exactly_what_spark_compares_them_with(payload: str) -> None:
    names = tuple(READ_COLUMNS)
    wanted = to_arrow_schema(schema_of(names, payload), timezone="UTC")
    assert arrow_schema_of(names, payload).equals(wanted)
    assert wanted.field("enqueued_at").type == pa.timestamp("us", tz="UTC")
    assert wanted.field("id").type == pa.string()


def test_trap_3_every_batch_has_the_types_and_not_only_the_first(live: Live) -> None:
    queue = live.create(bucket_size=1_000)
    live.put(queue, [NewMessage(b"")] * 17_000 + [NewMessage(b"z", attributes="{}")])
    reader = QueueReader(read_options(live, queue, minPartitions="1", payload="string"))
    (partition,) = reader.partitions()
    schemas = elsewhere(schemas_read, reader, partition)
    assert len(schemas) > 1
    assert all(schema.equals(arrow_schema_of(tuple(schema.names), "string")) for schema in schemas)


def test_trap_4_partitions_are_a_list_that_is_never_empty(live: Live) -> None:
    queue = live.create()
    for reader in (QueueReader(read_options(live, queue)), QueueReader(read_options(live, queue, start="latest"))):
        partitions = reader.partitions()
        assert isinstance(partitions, list) and len(partitions) == 1
        assert elsewhere(schemas_read, reader, partitions[0]) == []


def test_trap_6_nothing_hangs_on_a_commit(live: Live) -> None:
    """Spark calls it late, and for the last batch perhaps never."""
    queue = live.create(**QUICK)
    live.put(queue, [NewMessage(b"x")] * 25)
    live.drain(queue, 25)
    live.work_until(queue, "repair", 2)
    before = live.run(live.engine.marks(ACCOUNT, queue))
    reader = QueueStreamReader(read_options(live, queue, streaming=True))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert reader.partitions(start, end)
    reader.commit(end)
    assert reader.latestOffset(start, ReadAllAvailable()) == end
    assert live.run(live.engine.marks(ACCOUNT, queue)) == before
    reader.stop()


def test_trap_7_parameters_come_by_keyword_and_options_in_lower_case() -> None:
    for name in ("reader", "streamReader"):
        ours, sparks = (inspect.signature(getattr(source, name)) for source in (AngelhairDataSource, DataSource))
        assert list(ours.parameters) == list(sparks.parameters)
    for name in ("initialOffset", "latestOffset", "partitions", "read", "commit", "stop"):
        ours, sparks = (
            inspect.signature(getattr(reader, name)) for reader in (QueueStreamReader, DataSourceStreamReader)
        )
        assert list(ours.parameters) == list(sparks.parameters), name
    options = ReadOptions.of({"queue": "q", "data": "d", "maxbucketsperpartition": "3", "failondataloss": "false"})
    assert (options.most_buckets, options.fail_on_data_loss) == (3, False)


def interpreters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"path": [sys.executable]})


def test_trap_8_tasks_run_on_the_python_that_was_said(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    found = spark.range(0, 2, 1, 2).mapInArrow(interpreters, "path string").collect()
    assert {row.path for row in found} == {sys.executable}
    jobs = Path(angelhair.spark.__file__).parents[1] / "cli" / "pipeline" / "jobs.py"
    assert 'os.environ.setdefault("PYSPARK_PYTHON", sys.executable)' in jobs.read_text()


def test_trap_10_no_driver_that_loses_rows_or_cuts_numbers(spark: SparkSession, live: Live) -> None:
    """One protocol handler returned no rows and no error; JDBC makes 32 bits of SQLite's whole numbers."""
    sources = "".join(path.read_text() for path in Path(angelhair.spark.__file__).parent.rglob("*.py"))
    assert not re.search(r"NumpyProtocolHandler|jdbc", sources, re.IGNORECASE)
    assert {RAW.field(name).type for name in ("number", "enqueued_at", "visible_at")} == {pa.int64()}
    queue = live.create(bucket_size=10)
    before = datetime.now(UTC).timestamp()
    live.put(queue, [NewMessage(b"x", delay_ms=600_000)])
    times = table(spark, live, queue).selectExpr("unix_micros(enqueued_at) as put", "unix_micros(due_at) as due")
    (row,) = times.collect()
    assert before - 10 < row.put / 1e6 < before + 60
    assert row.due - row.put == 600_000_000


def test_secrets_are_in_no_plan_and_in_nothing_that_travels(
    spark: SparkSession, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {"USERNAME": "who-may-read", "PASSWORD": "what-only-he-knows", "SSL_KEY": "/where/the/key/is"}
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"x")] * 5)
    partitions = QueueReader(read_options(live, queue)).partitions()
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    elsewhere_too = {**live.options, "data": "", "contactPoints": "127.0.0.9"}
    travelling = [
        *partitions,
        QueueReader(read_options(live, queue)),
        QueueStreamReader(read_options(live, queue, streaming=True)),
        AngelhairDataSource({**live.options, "queue": queue}),
        ReadOptions.of({**{name.lower(): value for name, value in elsewhere_too.items()}, "queue": queue}),
    ]
    plan = table(spark, live, queue)._jdf.queryExecution().toString()  # type: ignore[operator]
    for secret in secrets.values():
        assert secret not in plan
        assert all(secret.encode() not in pickle.dumps(value) for value in travelling)
    # Whoever connects takes them from its own environment.
    settings = travelling[-1].place.cassandra_settings()  # type: ignore[union-attr]
    assert (settings.user, settings.password) == (secrets["USERNAME"], secrets["PASSWORD"])


def test_readers_and_partitions_travel(live: Live) -> None:
    """What Spark sends to its tasks, as plain objects."""
    queue = live.create(bucket_size=10)
    live.put(queue, [NewMessage(b"x")] * 5)
    readers = [QueueReader(read_options(live, queue, payload=payload)) for payload in PAYLOADS]
    sent = pickle.loads(pickle.dumps([(reader, reader.partitions()[0]) for reader in readers]))
    for payload, schemas in zip(PAYLOADS, elsewhere(all_schemas_read, sent), strict=True):
        assert [schema.equals(arrow_schema_of(schema.names, payload)) for schema in schemas] == [True]
