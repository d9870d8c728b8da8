"""What a server tells about itself: metrics, health, logs and traces.

`Observing` (operations.py) is the front: a server makes one, hands its parts to the service and the HTTP server, and
starts and stops it with them. Nothing in here can fail a request or hold one up.
"""
