"""`python -m tests.aws.celery_app.producer FOLDER COUNT`: asks for so many tasks, each of which leaves a file there."""

from __future__ import annotations

import sys

from tests.aws.celery_app import tasks


def main() -> None:
    folder, count = sys.argv[1], int(sys.argv[2])
    for number in range(count):
        tasks.mark.delay(folder, number)


if __name__ == "__main__":
    main()
