"""boto3 of before SQS spoke JSON, in a process of its own, with the face of today's client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from botocore.exceptions import ClientError

from tests.aws.old_process import packed, unpacked

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".old-sdk" / "bin" / "python"
SINCE_THEN = "MessageSystemAttributeNames"
"""A member that this SDK does not have yet: it says `AttributeNames`."""
PROCESS = Path(__file__).with_name("old_process.py")


class OldClient:
    """Its errors are raised as today's client's own, so that a test need not know which of the two it has."""

    def __init__(self, today: Any, key_id: str = "AK", secret: str = "secret") -> None:
        assert PYTHON.exists(), "the old SDK is missing: `make setup` installs it"
        self._today = today
        self._key = (key_id, secret)
        self.meta = today.meta
        self.exceptions = today.exceptions

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [str(PYTHON), str(PROCESS), self.meta.endpoint_url, *self._key], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        assert json.loads(self._answers.readline()) == "query"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._questions.close()
        self._process.wait(30)
        self._answers.close()

    def __getattr__(self, verb: str) -> Any:
        return lambda **parameters: self._call(verb, parameters, None)

    def get_paginator(self, verb: str) -> Any:
        client = self

        class Paginator:
            def paginate(self, PaginationConfig: dict[str, Any], **parameters: Any) -> Any:  # noqa: N803 - boto3's name
                return client._call(verb, parameters, PaginationConfig)

        return Paginator()

    def _call(self, verb: str, parameters: dict[str, Any], pages: dict[str, Any] | None) -> Any:
        if SINCE_THEN in parameters:
            parameters = {**parameters, "AttributeNames": parameters[SINCE_THEN]}
            del parameters[SINCE_THEN]
        self._questions.write(json.dumps(packed([verb, parameters, pages])) + "\n")
        self._questions.flush()
        answer = unpacked(json.loads(self._answers.readline()))
        if "answer" in answer:
            return answer["answer"]
        response = answer["error"]
        raise getattr(self.exceptions, answer["kind"], ClientError)(response, answer["operation"])
