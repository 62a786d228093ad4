"""The target of programs that are placed on several devices: a composition of other targets.

Its pipeline places subgraphs and splits the program into parts; each part is then compiled by its
own target, into a folder of one artifact. It is meant where a placement is given, and has no name
that one would ask for: devices are the names of all other targets, and this knows none of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from fewbit import __version__
from fewbit.base.progress import progress, say
from fewbit.base.target_name import TargetName
from fewbit.dialects.graph import SubgraphOp
from fewbit.errors import Error, UsageError
from fewbit.passes.graph.place_devices import Placement
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline, Stage
from fewbit.program.artifact import MANIFEST, Content, Folder, Manifest, write_folder
from fewbit.program.program import Program
from fewbit.program.references import read_bytes
from fewbit.program.signature import signature_of
from fewbit.program.state import initial_state, write_initial_state
from fewbit.targets import registry
from fewbit.targets.options import Options
from fewbit.targets.placed.parts import ENTRY, PlacedPart, PlacedProgram, read_parts
from fewbit.targets.target import Request, Target, Watcher
from fewbit.targets.view import Seen


@dataclass(frozen=True)
class PlacedOptions(Options):
    """Where the parts of a program are, and what is asked of their targets."""

    rules: tuple[str, ...] = ()
    default: str = registry.DEFAULT_TARGET
    """The target of all that no rule selects."""
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of targets, by name; each goes to the targets that have it."""

    @property
    def devices(self) -> tuple[str, ...]:
        """The targets that are named."""
        named = (rule.rpartition("=")[2] for rule in self.rules)
        return tuple(dict.fromkeys((*named, self.default)))


class Placed(Target):
    """Programs on several devices."""

    about = "a program on several devices, each part by its own target"
    see = "[placement](placement.md)"

    def pipeline(self, request: Request) -> Pipeline:
        given = PlacedOptions.of(request)
        rules = ",".join(map(json.dumps, given.rules))
        default = f"default={json.dumps(given.default)}"
        place = f"place-devices{{{f'rules={rules} ' if rules else ''}{default}}}"
        return Pipeline(
            (
                Stage("mico"),
                Stage("place", (place,)),
                Stage("parts", (f"split-parts{{{default}}}",)),
            )
        )

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        return ()

    def check(self, request: Request) -> None:
        """Refuse targets that do not exist, and options that none of them has; warn of others."""
        if not isinstance(request.options, PlacedOptions):
            raise UsageError(
                f"'{request.target}' is no target by itself",
                hint="say what is placed where: --place PATTERN=TARGET, or place=",
            )
        given = PlacedOptions.of(request)
        Placement(given.rules)
        for device in given.devices:
            check_device(device)
        _check_options(given)

    def begin(self, program: Program, request: Request) -> Compilation:
        """Return a compilation; devices that the program's own text names are checked, too."""
        placement = Placement(PlacedOptions.of(request).rules)
        begun = super().begin(program, request)
        for op in begun.module.ops:
            if not isinstance(op, SubgraphOp) or op.device_name is None:
                continue
            if placement.device_of(op.sym_name.data) is not None:
                op.device = None
            else:
                target = check_device(op.device_name, f"@{op.sym_name.data}")
                op.device = StringAttr(target.spell(op.device_name))
        return begun

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        placed = read_parts(made.program)
        with TemporaryDirectory(prefix="fewbit-parts-") as temporary:
            folders = _compile_parts(placed, request, Path(temporary))
            files: dict[str, Content] = {}
            for folder in folders:
                names = [*folder.manifest.files, MANIFEST]
                files |= {f"{folder.path.name}/{name}": folder.path / name for name in names}
            files |= _initial_state(program)
            manifest = _manifest(placed, [each.manifest for each in folders], program, request)
            return write_folder(output, manifest, {**files, **request.files})

    def suffix(self, stage: str) -> str:
        part, _, own = stage.rpartition("/")
        if not part:
            return super().suffix(stage)
        return registry.find_target(part.partition("-")[2]).suffix(own)

    def summarize(self, folder: Folder) -> Seen:
        from fewbit.targets.placed.report import summarize_parts

        return summarize_parts(folder.manifest)

    def load(self, folder: Folder) -> Any:
        from fewbit.runtime.placed import PlacedRunner

        return PlacedRunner(folder)


def place_request(request: Request, rules: Sequence[str], options: Mapping[str, Any]) -> Request:
    """Return a request for the parts of a program; what no rule selects stays on its target.

    A rule that also selects the entry, as `re:.*` does, says where functions run.
    """
    rules = tuple(map(_spell_device, rules))
    entry = (device for pattern, device in Placement(rules).rules if pattern.selects(ENTRY))
    given = PlacedOptions(rules, next(entry, _spell(request.target)), options)
    return replace(request, target=registry.COMPOSED, options=given)


def _spell_device(rule: str) -> str:
    pattern, _, device = rule.rpartition("=")
    return f"{pattern}={_spell(device)}"


def _spell(device: str) -> str:
    """Return the one way to write a device; a target that there is not is refused later."""
    kind = TargetName.parse(device).kind
    return registry.find_target(device).spell(device) if kind in registry.target_names() else device


def devices_in(module: ModuleOp) -> dict[str, str]:
    """Return the devices of subgraphs that have one in the text, by their names."""
    subgraphs = (op for op in module.ops if isinstance(op, SubgraphOp))
    return {op.sym_name.data: op.device_name for op in subgraphs if op.device_name is not None}


def check_device(device: str, place: str = "") -> Target:
    """Return the target that a device is, which it must be; say where this machine has none."""
    try:
        if device == registry.COMPOSED:
            raise UsageError(f"there is no target '{device}'")
        target = registry.check(Request(device))
    except Error as e:
        source = place or "the placement"
        raise UsageError(f"{e.what}, which {source} names", place=e.place, hint=e.hint) from e
    reason = target.find_obstacle(device)
    if reason is not None:
        say(f"warning: this machine compiles for {device} and cannot run it: {reason}")
    return target


def _check_options(given: PlacedOptions) -> None:
    targets = {device: registry.find_target(device) for device in given.devices}
    for name in given.given:
        if not any(name in target.options.names() for target in targets.values()):
            raise UsageError(
                f"none of the targets {', '.join(targets)} has an option '{name}'",
                hint="options of a target are for the parts that run there",
            )
    for device in targets:
        registry.check(Request(device, options=_options_of(device, given.given)))


def _options_of(device: str, given: Mapping[str, Any]) -> Options:
    known = registry.find_target(device).options.names()
    return registry.make_options(device, {n: v for n, v in given.items() if n in known})


def _compile_parts(placed: PlacedProgram, request: Request, folder: Path) -> list[Folder]:
    """Compile each part; those that are not on the default device, which may refuse one, first."""
    default = PlacedOptions.of(request).default
    order = sorted(placed.parts, key=lambda each: _effort(each, default))
    folders: dict[str, Folder] = {}
    with progress("Compiling parts", len(order)) as step:
        for part in order:
            folders[part.record.name] = _compile_part(part, request, folder)
            step()
    return [folders[part.record.name] for part in placed.parts]


def _effort(part: PlacedPart, default: str) -> tuple[bool, int]:
    size = read_bytes(part.program.module, part.program.store)
    return part.record.target == default, size


def _compile_part(part: PlacedPart, request: Request, folder: Path) -> Folder:
    record = part.record
    target = registry.find_target(record.target)
    given = PlacedOptions.of(request)
    stages = f"{record.name}-{TargetName.parse(record.target).kind}"
    own = replace(
        request,
        target=record.target,
        name=f"{request.name}_{record.name}",
        passes={},
        watch=_watch_part(request.watch, stages),
        options=_options_of(record.target, given.given),
        files={},
        float_weights=None,
    )
    try:
        return target.compile(part.program, own, folder / record.name)
    except Error as e:
        what = f"{e.what}, in {record.name} on {record.target}"
        raise type(e)(what, place=e.place, hint=e.hint, excerpt=e.excerpt) from e


def _watch_part(watch: Watcher | None, part: str) -> Watcher | None:
    """Return what tells of a part's stages as `part0-kind/stage`."""
    if watch is None:
        return None

    def tell(stage: str, text: str) -> None:
        watch(f"{part}/{stage}", text)

    return tell


def _initial_state(program: Program) -> dict[str, bytes]:
    inputs = signature_of(program.module).inputs
    values = initial_state(program.module, program.store)
    return write_initial_state({inputs[number].name: each for number, each in values.items()})


def _manifest(
    placed: PlacedProgram, parts: Sequence[Manifest], program: Program, request: Request
) -> Manifest:
    arenas = [each.arena_bytes for each in parts]
    known = [size for size in arenas if size is not None]
    return Manifest(
        name=request.name,
        target=request.target,
        compiler=__version__,
        inputs=placed.inputs,
        outputs=placed.outputs,
        recipe=program.recipe,
        arena_bytes=sum(known) if len(known) == len(arenas) else None,
        weight_bytes=sum(each.weight_bytes for each in parts),
        float_weights=request.float_weights,
        parts=tuple(part.record for part in placed.parts),
        transfers=placed.transfers,
        results=placed.results,
        options={"default": PlacedOptions.of(request).default},
        files={},
    )
