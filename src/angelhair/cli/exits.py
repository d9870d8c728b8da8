"""How a command ends: exit codes that mean something, and one line on stderr that says why.

    0    done
    1    failed: the server said no, or what was checked is not so
    2    wrong usage: nothing was tried
    3    nothing there: no message came, and --fail-empty was given
    69   unavailable: provably nothing was done; trying again is safe
    75   outcome unknown: it may have happened, or may yet
    130  Ctrl-C
    141  nobody reads what it prints any more

69 and 75 are what sysexits.h calls EX_UNAVAILABLE and EX_TEMPFAIL.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from angelhair.errors import (
    AngelhairError,
    InvalidReceipt,
    InvalidRequest,
    NotAllowed,
    OutcomeUnknown,
    QueueExists,
    QueueNotFound,
    StaleReceipt,
    SubscriptionNotFound,
    TopicExists,
    TopicNotFound,
    Unavailable,
)

DONE = 0
FAILED = 1
WRONG_USAGE = 2
NOTHING_THERE = 3
UNAVAILABLE = 69
OUTCOME_UNKNOWN = 75

INTERRUPTED = 130
"""What a shell reports for a command that Ctrl-C ended."""

NOBODY_READS = 141
"""What a shell reports for a command whose reader went away, as in `angelhair simulate --replay 7 | head`."""


class WrongUsage(Exception):
    """What was asked for makes no sense; nothing was tried."""


class Ended(Exception):
    """The command is over, with this exit code and this to say."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


Known = (AngelhairError, WrongUsage, Ended)
"""What a command may raise: `finish` makes a line and an exit code of it."""


def code_of(error: Exception) -> int:
    match error:
        case Ended():
            return error.code
        case WrongUsage():
            return WRONG_USAGE
        case Unavailable():
            return UNAVAILABLE
        case OutcomeUnknown():
            return OUTCOME_UNKNOWN
        case _:
            return FAILED


def code_of_all(errors: Iterable[AngelhairError]) -> int:
    """Of several failures the one that leaves most open: unknown before unavailable before refused."""
    codes = {code_of(error) for error in errors}
    return next((code for code in (OUTCOME_UNKNOWN, UNAVAILABLE, FAILED) if code in codes), DONE)


def in_words(error: Exception) -> str:
    match error:
        case Unavailable():
            return f"unavailable, nothing was done: {error}"
        case OutcomeUnknown():
            return f"outcome unknown, it may have happened: {error}"
        case NotAllowed() if not os.environ.get("ANGELHAIR_KEY_ID"):
            return f"{error}; this command takes them from ANGELHAIR_KEY_ID and ANGELHAIR_SECRET"
        case _:
            return str(error)


def word_of(error: AngelhairError) -> str:
    """The error's code, as the REST door spells it."""
    match error:
        case Unavailable():
            return "unavailable"
        case OutcomeUnknown():
            return "outcome_unknown"
        case InvalidReceipt():
            return "invalid_receipt"
        case InvalidRequest():
            return "invalid_request"
        case NotAllowed():
            return "not_allowed"
        case QueueNotFound():
            return "queue_not_found"
        case QueueExists():
            return "queue_exists"
        case TopicNotFound():
            return "topic_not_found"
        case TopicExists():
            return "topic_exists"
        case SubscriptionNotFound():
            return "subscription_not_found"
        case StaleReceipt():
            return "stale_receipt"
        case _:
            return "refused"


def complain(program: str, message: str) -> None:
    """One line, whatever is in the message: a server's text is not trusted with the terminal."""
    line = "".join(character if character.isprintable() else " " for character in message)
    # What has been printed comes before the complaint, also where both go to one place.
    sys.stdout.flush()
    print(f"{program}: {' '.join(line.split())}", file=sys.stderr, flush=True)


def finish(program: str, error: Exception) -> int:
    complain(program, in_words(error))
    return code_of(error)
