"""The REST door: queues and messages over plain HTTP and JSON.

`routes` is the one table of what there is: `door` dispatches by it, `openapi` and `reading` describe it. Handlers stand
in one file per group of verbs; `shapes` has what they take and give, `query` their parameters, `errors` what they
refuse and how.
"""
