"""Bringing messages to HTTP endpoints.

Fan-out puts what an endpoint is to get into a queue that no door shows, a message each. A `courier` on every server
receives from it, posts (`posting`) to an address that may be posted to (`places`), and acks; or, when that failed, lets
the message come back after a pause that the delivery policy says. A server that dies leaves it to the others.
"""
