"""Reading the messages of a run of buckets in a task: Arrow from the store, without a server in between."""
