"""`fewbit inspect layers|loops|artifact|...`: what a model or an artifact consists of.

`fewbit inspect MODEL` is `fewbit inspect layers MODEL`; of an artifact it is what was compiled.
What else there is to see of an artifact its target says: each of its views is a subcommand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import typer
import typer.core

from fewbit.cli.artifact import ArtifactFolder, show_artifact, show_view
from fewbit.cli.layers import inspect_layers
from fewbit.cli.loops import inspect_loops
from fewbit.cli.modes import ModeGroup, OldFlag
from fewbit.cli.options import AsJson
from fewbit.cli.target_options import make_command

if TYPE_CHECKING:
    from fewbit.targets.view import View


class InspectGroup(ModeGroup):
    """`fewbit inspect`, whose subcommands also come from targets."""

    default = "layers"
    old_flags: ClassVar[Mapping[str, OldFlag]] = {"--loops": OldFlag("loops")}

    def later(self) -> Sequence[str]:
        return list(_views())

    def make(self, name: str) -> typer.core.TyperCommand:
        return _command(_views()[name])

    def find_old(self, flags: Sequence[str]) -> Mapping[str, OldFlag]:
        """Return old flags, among them the names of views: `--asm 'dot_*'`."""
        known = {word for param in self.commands[self.default].params for word in param.opts}
        if old := super().find_old(flags):
            return old
        if not set(flags) - known:
            return {}
        named = {f"--{name}": view for name, view in _views().items()}
        return {
            flag: OldFlag(view.name, next((o.flag for o in view.options.declared()), None))
            for flag, view in named.items()
            if flag in flags
        }


inspect = typer.Typer(
    cls=InspectGroup,
    help="Show a model's layers or loops, or what was compiled; 'inspect MODEL' shows layers.",
)
inspect.command("layers")(inspect_layers)
inspect.command("loops")(inspect_loops)
inspect.command("artifact")(show_artifact)


def _views() -> dict[str, View]:
    """Return the views of all targets, by name."""
    from fewbit.targets.registry import all_targets

    return {view.name: view for target in all_targets() for view in target.views}


def _command(view: View) -> typer.core.TyperCommand:
    def show(artifact: ArtifactFolder, as_json: AsJson = False, **given: Any) -> None:
        show_view(view.name, artifact, given, as_json)

    return make_command(
        view.name, view.help, show, [(option, None) for option in view.options.declared()]
    )
