"""Writing to a queue from Spark: each row becomes a message, once, however often Spark tries."""
