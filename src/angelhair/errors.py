"""Every error Angelhair raises, sorted by what the caller may do next.

    AngelhairError
    ├── StoreError                  the store did not give a clear yes
    │   ├── Unavailable             it provably did not happen: try again
    │   └── OutcomeUnknown          it may have happened, or may yet: try again under the same id, or read back
    ├── RequestError                the request itself is wrong: trying again cannot help
    │   ├── InvalidRequest          a value is out of bounds; `field` names it
    │   │   └── InvalidReceipt      the receipt is forged, damaged or another queue's
    │   ├── NotAllowed              the access key is missing, wrong or not for this
    │   ├── QueueNotFound
    │   ├── QueueExists             the name is taken by a queue with other settings
    │   ├── TopicNotFound
    │   ├── TopicExists             the name is taken by a topic with other settings
    │   ├── SubscriptionNotFound
    │   └── StaleReceipt            the message was delivered again, moved or settled since
    │       ├── MessageGone         it was settled, perhaps by this very receipt, and its bucket has been dropped
    │       └── NotInFlight         its time-out has passed, though nobody received it since
    └── StoreRefused                the store must not be used as it is: wrong schema version, unsafe settings

"Did not happen" and "may have happened" are never the same type: a put that answers `Unavailable` will never be
delivered, one that answers `OutcomeUnknown` may be.
"""


class AngelhairError(Exception):
    """The root of all."""


class StoreError(AngelhairError):
    """The store did not give a clear yes."""


class Unavailable(StoreError):
    """It provably did not happen. Trying again is safe."""


class OutcomeUnknown(StoreError):
    """It may have happened, or may yet. Trying again is safe only under the same id or condition."""


class RequestError(AngelhairError):
    """The request is wrong as it stands; nothing was changed."""


class InvalidRequest(RequestError):
    """A value is out of bounds."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class InvalidReceipt(InvalidRequest):
    """The receipt is forged, damaged, or belongs to another queue."""

    def __init__(self, message: str) -> None:
        super().__init__("receipt", message)


class NotAllowed(RequestError):
    """The server wants an access key, or another than it was shown."""


class QueueNotFound(RequestError):
    """No queue of this name in this account."""

    def __init__(self, account: str, name: str) -> None:
        super().__init__(f"there is no queue {name!r} in account {account!r}")
        self.account = account
        self.name = name


class QueueExists(RequestError):
    """The name is taken by a queue whose settings differ."""

    def __init__(self, account: str, name: str, differing: tuple[str, ...]) -> None:
        super().__init__(f"queue {name!r} exists in account {account!r} with another value of {', '.join(differing)}")
        self.name = name
        self.differing = differing


class TopicNotFound(RequestError):
    """No topic of this name in this account."""

    def __init__(self, account: str, name: str) -> None:
        super().__init__(f"there is no topic {name!r} in account {account!r}")
        self.account = account
        self.name = name


class TopicExists(RequestError):
    """The name is taken by a topic whose settings differ."""

    def __init__(self, account: str, name: str, differing: tuple[str, ...]) -> None:
        super().__init__(f"topic {name!r} exists in account {account!r} with another value of {', '.join(differing)}")
        self.differing = differing


class SubscriptionNotFound(RequestError):
    """The topic has no such subscription."""

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(f"topic {topic!r} has no subscription {what!r}")
        self.topic = topic
        self.what = what


class StaleReceipt(RequestError):
    """The receipt was good once: its message has been delivered again, moved or settled since."""


class MessageGone(StaleReceipt):
    """The message was settled for good, perhaps by an earlier try with this receipt; its bucket has been dropped."""


class NotInFlight(StaleReceipt):
    """The time-out of this delivery has passed, though nobody received the message since."""


class StoreRefused(AngelhairError):
    """The store must not be used as it is; the message says what to change."""
