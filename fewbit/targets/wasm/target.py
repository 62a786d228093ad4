"""The target `wasm`: a WebAssembly module, a JavaScript module around it, and a page to try it.

There is no runtime: the module has all memory and weights inside, one function, and imports
nothing. node runs it here, if it is installed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit import __version__
from fewbit.codegen.interface import Interface, interface_of
from fewbit.codegen.manifest import manifest_port, manifest_weight
from fewbit.errors import MissingToolError, Place, UnsupportedError, UsageError
from fewbit.passes.llvm.emit_object import ObjectCode
from fewbit.passes.memory.plan_memory import Arena
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Content, Folder, Manifest, write_folder
from fewbit.program.program import Program
from fewbit.program.weight_image import WeightImage
from fewbit.targets.mcu.fix_sizes import one_sample
from fewbit.targets.options import TEXT, Options, option
from fewbit.targets.target import Request, Target
from fewbit.targets.wasm.engine import DETAILS, engine_of
from fewbit.targets.wasm.interface import RUN
from fewbit.targets.wasm.javascript import describe, package, script, types
from fewbit.targets.wasm.memory import STACK_BYTES, MemoryMap
from fewbit.targets.wasm.page import page
from fewbit.targets.wasm.pipeline import wasm_pipeline
from fewbit.toolchain.wasm import MissingFunctionsError, link_module, memory_bytes, with_data

if TYPE_CHECKING:
    from fewbit.targets.probe import Found


@dataclass(frozen=True)
class WasmOptions(Options):
    """The options of `wasm`."""

    labels: str | None = option(
        TEXT,
        "Names of the classes, for the page: yes,no,up, or a file with one on each line.",
        metavar="NAMES",
        see="[browsers](wasm.md#the-page)",
    )


class Wasm(Target):
    """Browsers, and whatever else runs WebAssembly."""

    about = "a WebAssembly module for browsers, with JavaScript, types and a page around it"
    see = "[browsers](wasm.md)"
    detail, details = "FEATURES", DETAILS
    is_simulated = True
    options = WasmOptions
    fixed_point = True

    def check(self, request: Request) -> None:
        engine_of(request.target)
        labels_of(WasmOptions.of(request).labels)

    def pipeline(self, request: Request) -> Pipeline:
        return wasm_pipeline(engine_of(request.target or self.name))

    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        engine = engine_of(request.target or self.name)
        facts: list[object] = [engine, engine.isa, WeightImage()]
        if program is None:
            return facts
        return [*facts, interface_of(one_sample(program), request.name)]

    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        engine, interface = engine_of(request.target), made.ctx.get(Interface)
        weights, arena = made.ctx.get(WeightImage), made.ctx.get(Arena).static
        places = made.ctx.get(MemoryMap)
        code = _link(made.module, places)
        module = with_data(code, places.weights, weights.view())
        labels = labels_of(WasmOptions.of(request).labels)
        description = describe(interface, engine, places, program.recipe)
        files: dict[str, Content] = {
            "model.wasm": module,
            "model.js": script(description).encode(),
            "model.d.ts": types(description).encode(),
            "package.json": package(description).encode(),
            "index.html": page(description, module, program, labels).encode(),
        }
        manifest = Manifest(
            name=interface.name,
            target=request.target,
            compiler=__version__,
            inputs=tuple(map(manifest_port, interface.inputs)),
            outputs=tuple(map(manifest_port, interface.outputs)),
            recipe=program.recipe,
            arena_bytes=arena,
            weight_bytes=weights.nbytes,
            weights=tuple(map(manifest_weight, weights.entries)),
            float_weights=request.float_weights,
            options={
                "module": str(len(module)),
                "code": str(len(code)),
                "memory": str(memory_bytes(module)),
            },
            files={},
        )
        return write_folder(output, manifest, {**files, **request.files})

    def load(self, folder: Folder) -> Any:
        from fewbit.targets.wasm.run_in_node import NodeRunner

        return NodeRunner(folder)

    def find_obstacle(self, name: str) -> str | None:
        from fewbit.targets.wasm.run_in_node import find_node

        try:
            find_node(engine_of(name))
        except MissingToolError as e:
            return e.what
        return None

    def probe(self, name: str) -> Found:
        from fewbit.targets.probe import Found, probe_layer

        found = probe_layer(name)
        why = "compiled a layer and ran it in node" if found.works else found.why
        return Found(found.works, why, found.install)


def _link(program: ObjectCode, places: MemoryMap) -> bytes:
    try:
        return link_module([program.data], [RUN], stack_bytes=STACK_BYTES, data_from=places.end)
    except MissingFunctionsError as e:
        raise UnsupportedError(
            f"the program calls {', '.join(e.names)}, which WebAssembly has no instruction for, "
            "and there is no function of ours",
            place=Place(layer=_layer_that_calls(program.llvm, e.names)),
            hint="give all layers static scales and compile with --integer-only, or leave that "
            "part of the model to JavaScript",
        ) from e


def _layer_that_calls(module: Any, names: Sequence[str]) -> str | None:
    """Return the layer that calls a function, by the name of the loop nest that does."""
    for function in module.functions:
        text = str(function)
        if any(f"@{name}(" in text for name in names) and not function.is_declaration:
            named = re.search(r"entry_\d+_(\w+)$", function.name)
            return named[1] if named else function.name
    return None


def labels_of(given: str | None) -> list[str]:
    """Return names of classes from a list, or from a file of that name."""
    if given is None:
        return []
    if "," not in given:
        try:
            given = ",".join(Path(given).read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeError) as e:
            raise UsageError(
                f"the names of classes cannot be read from '{given}'",
                hint="give them with commas, as in --labels yes,no,up, or a file of lines",
            ) from e
    return [name.strip() for name in given.split(",")]
