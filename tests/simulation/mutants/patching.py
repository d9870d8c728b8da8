"""What a mutant is: the engine with a few words of its source changed, for the time of a `with` block.

A patch names a function and replaces a piece of its text. The function object stays the same, only its code is another,
so everybody who imported it by name runs the mutant too. The piece must occur exactly once: when the engine moves on,
a patch that no longer fits fails loudly and never turns into a mutant that breaks nothing.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import angelhair.batching
import angelhair.engine
from angelhair.model import BUCKETED

Function = Callable[..., Any]


@dataclass(frozen=True)
class Patch:
    """In this function of the engine (`module.function` or `module.Class.method`), `new` takes the place of `old`.
    Modules of batching have that before their names."""

    where: str
    old: str
    new: str

    def function(self) -> Function:
        room, _, where = self.where.partition(".")
        found: Any = angelhair.batching if room == "batching" else angelhair.engine
        for part in (where if room == "batching" else self.where).split("."):
            if inspect.ismodule(found):
                with suppress(ModuleNotFoundError):
                    import_module(f"{found.__name__}.{part}")
            found = getattr(found, part)
        assert isinstance(found, FunctionType) and not found.__code__.co_freevars, f"{found} cannot be patched"
        return found


@dataclass(frozen=True)
class Mutant:
    """One way to break the engine."""

    name: str
    breaks: str
    """What it does wrong, in one sentence."""
    rule: str
    """The promise or rule of the design that it breaks."""
    patches: tuple[Patch, ...]
    caught_by: tuple[str, ...] = ()
    """The checkers that can see it. Another one does not count: the mutant would be another than the one meant."""
    attack: Callable[[], Coroutine[Any, Any, bool]] | None = None
    """For what seeds bring about too seldom: an attack that the engine withstands and the mutant does not."""
    covered_by: str = ""
    """For mutants that must do no harm: the rule that stands in for what was taken away."""
    kind: str = BUCKETED
    """Of the queue that it is hunted with."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        codes = self.codes()
        with ExitStack() as stack:
            for function, code in codes.items():
                stack.enter_context(_replaced(function, code))
            yield

    def codes(self) -> dict[Function, CodeType]:
        """What each patched function runs while the mutant is at work."""
        sources: dict[Function, str] = {}
        for patch in self.patches:
            function = patch.function()
            source = sources.get(function) or _plain_source(function)
            found = source.count(patch.old)
            if found != 1:
                raise LookupError(f"mutant {self.name!r}: {patch.old!r} occurs {found} times in {patch.where}")
            sources[function] = source.replace(patch.old, patch.new)
        return {function: _compiled(source, self.name) for function, source in sources.items()}


def _plain_source(function: Function) -> str:
    """As Python itself would lay it out: single quotes, no comments, a statement a line, however the file looks."""
    return ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(function))))


def _compiled(source: str, mutant: str) -> CodeType:
    # Its lines are not the engine's: coverage must not take them for covered.
    flags = __future__.annotations.compiler_flag
    module = compile(source, f"<mutant {mutant}>", "exec", flags=flags, dont_inherit=True)
    return next(item for item in module.co_consts if isinstance(item, CodeType))


@contextmanager
def _replaced(function: Any, code: CodeType) -> Iterator[None]:
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before
