"""A YAML loader that guesses less: see `file.py`."""

from __future__ import annotations

import re
from typing import Any

import yaml


class Duplicate(Exception):
    """One key, twice in the same group."""

    def __init__(self, key: str, line: int) -> None:
        super().__init__(key)
        self.key = key
        self.line = line


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  as the base declares it

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise Duplicate(key.value, key.start_mark.line + 1)
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


for _tag, _shape, _first in (
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("int", r"-?(?:0|[1-9][0-9]{0,17})", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,17}", "-0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^{_shape}$"), list(_first))


def load(text: str) -> Any:
    """Raises `yaml.YAMLError`, `Duplicate`, and what building a value may raise."""
    return yaml.load(text, Loader=_Loader)
