"""`angelhair completion`: a script that completes the command in a shell, names of queues included."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from angelhair.cli.exits import DONE, UNAVAILABLE, Ended
from angelhair.cli.parsers import add_command
from angelhair.server.installing import to_install

SHELLS = ("bash", "zsh", "fish")

QUEUES = "angelhair queue list --retry 0 2>/dev/null"
"""What the scripts run to find names of queues. It fails in silence where there is no server."""

PREAMBLE = {
    "bash": f'_angelhair_queues() {{\n  compgen -W "$({QUEUES})" -- "$1"\n}}\n',
    "zsh": f"_angelhair_queues() {{\n  local -a names\n  names=(${{(f)\"$({QUEUES})\"}})\n  compadd -a names\n}}\n",
    "fish": "",
}


def add_to(commands: Any) -> None:
    parser = add_command(
        commands, "completion", "print a script that completes this command in a shell",
        "Prints a script that completes commands, options, files and the names of queues in a shell.",
        """
        bash:  angelhair completion bash > ~/.local/share/bash-completion/completions/angelhair
        zsh:   angelhair completion zsh > ~/.zfunc/_angelhair  (with fpath+=~/.zfunc before compinit)
        fish:  angelhair completion fish > ~/.config/fish/completions/angelhair.fish""",
        run,
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def run(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ModuleNotFoundError as error:
        raise Ended(UNAVAILABLE, f"shtab is not installed, which writes the scripts; {to_install('server')}") from error
    from angelhair.cli.main import build_parser

    parser = build_parser()
    names = {"bash": "_angelhair_queues", "zsh": "_angelhair_queues", "fish": f"({QUEUES})"}
    kinds = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "QUEUE": names}
    for action in _actions(parser):
        kind = kinds.get(str(action.metavar))
        if kind is not None:
            action.complete = kind  # type: ignore[attr-defined]
        elif "|" in str(action.metavar) and action.choices is None:
            # Settings are judged later, by what may come from a file too; here the words are as good as choices.
            action.choices = str(action.metavar).split("|")
        if isinstance(action, argparse._SubParsersAction):
            # Beside a name there is room for a line, not for a paragraph.
            for shown in action._choices_actions:
                action.choices[shown.dest].description = shown.help
    print(shtab.complete(parser, arguments.shell, preamble=PREAMBLE[arguments.shell]))
    return DONE


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _actions(each)
