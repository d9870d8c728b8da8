"""What is measured beside, through Maven, once: SQLite's JDBC driver and the Cassandra connector for Spark, ElasticMQ
for the SQS door."""

from __future__ import annotations

from pathlib import Path

from cluster.maven import fetch, versioned

SPARK_POM = Path(__file__).with_name("pom.xml")
ELASTICMQ_POM = Path(__file__).with_name("elasticmq.xml")


def fetch_spark_jars() -> list[Path]:
    needed = ("sqlite-jdbc-*.jar", "spark-cassandra-connector_*.jar")
    jars = fetch(SPARK_POM, versioned("spark", SPARK_POM), "what Spark is measured beside", needed)
    return sorted(jars.glob("*.jar"))


def fetch_elasticmq() -> Path:
    """The folder with its jars."""
    return fetch(ELASTICMQ_POM, versioned("elasticmq", ELASTICMQ_POM), "ElasticMQ", ["elasticmq-server_*.jar"])
