"""How Spark finds Angelhair by itself: it looks for installed modules whose names begin with `pyspark_`, and takes what
each has as `DefaultSource`. So `format("angelhair")` works without `register` wherever the package is installed.

Filters are not taken then, as a session that nobody has set up for them refuses a reader that takes them.
"""

from __future__ import annotations

from angelhair.spark.source import AngelhairDataSource as DefaultSource

__all__ = ["DefaultSource"]
