"""Topics: what is published to one reaches every queue that is subscribed to it."""
