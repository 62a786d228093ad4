"""Verbs with subcommands, one of which is meant where none is named: `fewbit tune zoo:lenet`.

What is a subcommand now was chosen by a flag before, `fewbit tune --calibrate`. The flag is still
understood: it is rewritten before anything is parsed, so that subcommands do not know of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import typer.core

_SHARED = re.compile(r"-v+|-q|--verbose|--quiet|--debug|--version")
_HELP = ("-h", "--help")


@dataclass(frozen=True)
class OldFlag:
    """A flag that became a subcommand."""

    subcommand: str
    option: str | None = None
    """What it is called there; None where it goes, and its value is an argument."""


class ModeGroup(typer.core.TyperGroup):
    """A verb with subcommands."""

    default: ClassVar[str]
    """The subcommand that is meant where none is named."""
    old_flags: ClassVar[Mapping[str, OldFlag]] = {}
    shared: Sequence[Any] = ()
    """Options that all commands have, for those that are made later."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Where nothing follows yet, the shell is offered subcommands as well.
        is_open = ctx.resilient_parsing and not args
        return super().parse_args(ctx, args if is_open else self.spell(ctx, args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in self.later():
            command = self.make(cmd_name)
            command.params.extend(self.shared)
            self.add_command(command, cmd_name)
        return command

    def list_commands(self, ctx: Any) -> list[str]:
        return list(dict.fromkeys([*super().list_commands(ctx), *self.later()]))

    def later(self) -> Sequence[str]:
        """Return names of subcommands that are made when they are asked for: targets bring them."""
        return ()

    def make(self, name: str) -> typer.core.TyperCommand:
        raise NotImplementedError

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Offer what may follow where no subcommand is named, too."""
        params = self.commands[self.default].params
        first = next((each for each in params if each.param_type_name == "argument"), None)
        meant = [] if first is None else first.shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *meant]

    def spell(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments with the subcommand that is meant."""
        first = next((word for word in args if not _SHARED.fullmatch(word)), "")
        if first in _HELP or first in self.commands:
            return args
        flags = [word.partition("=")[0] for word in args if word.startswith("--")]
        for flag, meant in self.find_old(flags).items():
            return [meant.subcommand, *_without(args, flag, meant.option)]
        # Models mostly have a colon, a slash or a dot, and need no look at what targets bring.
        if re.fullmatch(r"[\w-]+", first) and first in self.list_commands(ctx):
            return args
        return [self.default, *args]

    def find_old(self, flags: Sequence[str]) -> Mapping[str, OldFlag]:
        """Return those of some flags that became subcommands."""
        return {flag: self.old_flags[flag] for flag in flags if flag in self.old_flags}


def _without(args: Sequence[str], flag: str, option: str | None) -> list[str]:
    words: list[str] = []
    for word in args:
        name, equals, value = word.partition("=")
        if name != flag:
            words.append(word)
            continue
        words += [option] if option else []
        words += [value] if equals else []
    return words
