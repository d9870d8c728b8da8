"""Kills one process when whoever holds the other end of this program's input is gone, however it went.

Run as a script with the process id as its argument. A parent-death signal would be tied to the thread that started the
node, and a node may well be started from a short-lived thread; a pipe is tied to the process.
"""

import os
import signal
import sys


def main() -> None:
    # An id may be given to another process after the first has ended; a process file descriptor may not.
    watched = os.pidfd_open(int(sys.argv[1]))
    for harmless in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(harmless, signal.SIG_IGN)
    while os.read(0, 1):
        pass
    try:
        signal.pidfd_send_signal(watched, signal.SIGKILL)
    except ProcessLookupError:
        pass


main()
