"""The image that every test here starts from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.container.tools import Image


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)
