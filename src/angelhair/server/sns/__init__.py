"""The SNS door: Amazon SNS in its one protocol, Query.

A request is recognised (`recognising`), decoded into its shape (`inputs`) and checked (`checks`) for all that AWS
refuses without looking at a topic. A typed result (`outputs`) or an error (`errors`) goes back the same way
(`answering`). `operations` is the one table of what is said, `door` has the table of what is done: the `actions`.

What a subscriber gets is made in `envelope`, signed by `signing`. Queues get it from the fan-out, which all doors
share; HTTP endpoints from `deliveries`. `kept` says what of a topic is the engine's, and what is a note.
"""
