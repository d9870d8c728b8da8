"""The SQS door: Amazon SQS in its two protocols, JSON 1.0 and the older Query.

A request is recognised (`recognising`), decoded once into its shape (`json_protocol`, `aws.query_protocol`; both give
the same shapes, `inputs`) and checked (`checks`) for all that AWS refuses without looking at a queue. What comes out is
a typed value. A typed result (`outputs`) or an error (`errors`) goes back the same way (`answering`, `aws.xml`).
`operations` is the one table of what is said. None of that calls a service, reads a clock or waits.

`door` has the table of what is done: the `actions`, which go through the service. Move tasks (`tasks`) outlive their
request: `movers` works on them in the background.
"""
