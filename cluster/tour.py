"""`.venv/bin/python -m cluster.tour`: the store's verbs on a running Cassandra, told step by step."""

from __future__ import annotations

import argparse
import asyncio
import logging
import uuid

from angelhair.engine.schema import BODIES, STATES
from angelhair.engine.store import Change, Partition, Row, RowChange, Span, Write
from angelhair.stores.cassandra import CassandraSettings, bootstrap, create_keyspace, open_store


async def tour(contact_points: tuple[str, ...]) -> None:
    settings = CassandraSettings(contact_points)
    print(f"Creating keyspace {settings.keyspace} and its tables, unless they are there …")
    warnings = await create_keyspace(settings) + await bootstrap(settings)
    store = await open_store(settings)
    for warning in dict.fromkeys([*warnings, *store.warnings]):
        print(f"  warning: {warning}")
    bucket = f"tour/{uuid.uuid4()}"
    bodies, states = Partition(BODIES, bucket), Partition(STATES, bucket)

    print("\nA blind write of three bodies:")
    print("  ", await store.write([Write(bodies, [Row(number, {"body": b"hello"}) for number in (1, 2, 3)])]))
    claim = Change(states, [RowChange(2, {"delivery": None}, {"delivery": 1})], expect_flags={"finished": None})
    print("Two consumers claim message 2, each expecting that nobody has:")
    print("  ", await store.change([claim]))
    print("  ", await store.change([claim]))
    print("What is there now:")
    for slice_ in await store.read([Span(bodies), Span(states)]):
        print("  ", slice_)
    print("Dropped whole:", await store.drop([bodies, states]))
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cluster.tour", description=__doc__)
    parser.add_argument("--contact-points", default="127.0.0.1", help="addresses, with commas between them")
    options = parser.parse_args()
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    asyncio.run(tour(tuple(options.contact_points.split(","))))


if __name__ == "__main__":
    main()
