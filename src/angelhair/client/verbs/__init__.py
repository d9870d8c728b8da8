"""What can be asked of a server, one file a subject. Each verb is a plan; `Client` and `AsyncClient` run it."""
