"""Options of targets on the command line, made from what the targets declare.

A verb that takes a target also takes its options. Targets are loaded when such a verb is used:
the one that `-t` names, or all where help is asked for or an option is not its own, so that the
error can say whose it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, Signature, signature
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
import typer.core
import typer.main

from fewbit.errors import Error

if TYPE_CHECKING:
    from fewbit.targets.options import Option
    from fewbit.targets.target import Target

CliParameter = Any
"""A parameter as typer has it, whose type it keeps to itself."""


class TargetCommand(typer.core.TyperCommand):
    """A command with the options of targets beside its own."""

    verb: ClassVar[str]
    """Options say which verbs have them."""
    _made: Sequence[CliParameter] = ()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self._made = self._needed_params(ctx, args)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[CliParameter]:
        return [*super().get_params(ctx), *self._made]

    def invoke(self, ctx: Any) -> Any:
        ctx.obj = {each.name: ctx.params.pop(each.name) for each in self._made}
        return super().invoke(ctx)

    def load_all(self) -> Sequence[CliParameter]:
        """Return the options of all targets; the help of `--target` then names these."""
        from fewbit.targets.registry import all_targets

        targets = [each for each in all_targets() if self.takes(each)]
        chosen = next(param for param in self.params if param.name == "target")
        words = ", ".join(_write_name(each) for each in targets)
        chosen.help = f"One of {words}."  # pyright: ignore[reportAttributeAccessIssue]
        return option_params(self.verb, targets)

    def takes(self, target: Target) -> bool:
        """Return whether the command is of any use for a target."""
        return True

    def _needed_params(self, ctx: Any, args: Sequence[str]) -> Sequence[CliParameter]:
        from fewbit.targets.registry import DEFAULT_TARGET, find_target

        default = next(param.default for param in self.params if param.name == "target")
        given = _target_of(args) or default or DEFAULT_TARGET
        own = {word for param in self.params for word in (*param.opts, *param.secondary_opts)}
        try:
            params = option_params(self.verb, [find_target(str(given))])
        except Error:
            return self.load_all()
        known = own | {word for param in params for word in param.opts}
        words = {word.partition("=")[0] for word in args if word.startswith("-")}
        unknown = {word for word in words if word.startswith("--") or word == "-h"} - known
        return self.load_all() if unknown else params


def target_options(context: typer.Context) -> dict[str, Any]:
    """Return the options of targets that were given, by their names in Python."""
    options: dict[str, Any] = context.obj or {}
    return {name: value for name, value in options.items() if value}


def option_params(verb: str, targets: Iterable[Target]) -> list[CliParameter]:
    """Return the options that targets have for a verb, each once, in panels by whose they are."""
    from fewbit.targets.registry import shorten

    owners: dict[str, list[str]] = {}
    options: dict[str, Option] = {}
    for target in targets:
        for option in target.options.declared():
            if verb in option.verbs:
                options.setdefault(option.name, option)
                owners.setdefault(option.name, []).append(target.name)
    return make_params(
        (option, f"Options of {shorten(owners[name])}") for name, option in options.items()
    )


def make_params(options: Iterable[tuple[Option, str | None]]) -> list[CliParameter]:
    """Return command-line parameters for declared options, each with its help panel."""

    def holder(**_: Any) -> None: ...

    return list(make_command("holder", "", holder, options).params)


def make_command(
    name: str,
    help: str,
    function: Callable[..., object],
    options: Iterable[tuple[Option, str | None]] = (),
) -> typer.core.TyperCommand:
    """Return a command whose function also takes declared options, by name."""

    def call(**given: Any) -> object:
        return function(**given)

    own = signature(function, eval_str=True).parameters.values()
    named = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]
    params = [_parameter(option, panel) for option, panel in options]
    call.__signature__ = Signature([*named, *params])  # pyright: ignore[reportFunctionMemberAccess]
    app = typer.Typer(add_completion=False)
    app.command(name, help=help)(call)
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperCommand)
    return command


def _parameter(option: Option, panel: str | None) -> Parameter:
    spelled = typer.Option(
        option.flag,
        metavar=option.metavar,
        help=option.help,
        rich_help_panel=panel,
        show_default=False,
    )
    return Parameter(
        option.name,
        Parameter.KEYWORD_ONLY,
        default=_default(option),
        annotation=Annotated[_type(option), spelled],
    )


def _type(option: Option) -> Any:
    if option.kind.is_flag:
        return bool
    return list[str] | None if option.kind.is_repeatable else str | None


def _default(option: Option) -> Any:
    return False if option.kind.is_flag else None


def _target_of(args: Sequence[str]) -> str | None:
    for word, following in pairwise([*args, ""]):
        if word in ("-t", "--target"):
            return following
        if word.startswith("--target="):
            return word.partition("=")[2]
    return None


def _write_name(target: Target) -> str:
    return f"{target.name}[:{target.detail}]" if target.detail else target.name
