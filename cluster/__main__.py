"""`make cassandra`, or `.venv/bin/python -m cluster`: a real Cassandra in the foreground, until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from cluster import CassandraCluster, ClusterFailed, ComponentMissing
from cluster.jars import cache_directory
from cluster.nodes import contact_points_text

NODE_WATCH_SECONDS = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cluster", description="Runs Cassandra on loopback until Ctrl-C.")
    parser.add_argument(
        "--nodes", type=int, choices=(1, 3), default=1,
        help="one is enough to try things; three survive the loss of one (default: 1)",
    )
    parser.add_argument(
        "--first-address", type=int, default=1, metavar="X",
        help="the first node listens on 127.0.0.X, the others on the addresses after it (default: 1)",
    )
    parser.add_argument(
        "--directory", type=Path, metavar="DIR",
        help="keep data and logs there (default: a temporary directory that goes with the cluster)",
    )
    parser.add_argument(
        "--commitlog-sync", choices=("batch", "periodic", "group"), default="batch",
        help="when a write is confirmed: batch and group wait for the disk, periodic (Cassandra's own default) does "
        "not and can lose confirmed messages (default: batch)",
    )
    options = parser.parse_args()
    # The driver reports every attempt on a port that is not open yet.
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)

    asked_to_stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: asked_to_stop.set())
    nodes = "1 node" if options.nodes == 1 else f"{options.nodes} nodes"
    print(f"Starting {nodes} of Cassandra. The very first start fetches 70 MB into {cache_directory()}", flush=True)
    try:
        cluster = CassandraCluster(
            options.nodes,
            first_address=options.first_address,
            directory=options.directory,
            commitlog_sync=options.commitlog_sync,
        )
        with cluster:
            points = contact_points_text(cluster.contact_points)
            print(f"\nCassandra answers on {points}\nData and logs: {cluster.directory}\n", flush=True)
            print("Try, in another terminal, from this directory:", flush=True)
            print(f"  .venv/bin/python -m cluster.tour --contact-points {','.join(cluster.contact_points)}", flush=True)
            print("\nCtrl-C stops it.", flush=True)
            while not asked_to_stop.wait(NODE_WATCH_SECONDS):
                for number in range(1, cluster.size + 1):
                    if not cluster.node(number).running:
                        raise ClusterFailed(f"node {number} ended by itself:\n{cluster.node(number).last_words()}")
            print("Stopping.", flush=True)
    except (ComponentMissing, ClusterFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
