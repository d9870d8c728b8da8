"""The one error of this room."""

from __future__ import annotations

from collections.abc import Iterable

from angelhair.errors import AngelhairError


class SettingsRefused(AngelhairError):
    """Nothing may start with these settings. Each problem is one line that names where it was said."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))
