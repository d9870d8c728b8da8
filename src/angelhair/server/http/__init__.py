"""HTTP/1.1, as far as a queue needs it: a connection's state machine on httptools, listening, graceful stop."""

from angelhair.server.http.listening import HttpServer
from angelhair.server.http.messages import Request, Response

__all__ = ["HttpServer", "Request", "Response"]
