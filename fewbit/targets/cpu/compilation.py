"""A program on its way to an object file, in stages that one can stop at and look into.

| stage | the program is |
|---|---|
| `mico` | as it was given: layers, and tensors between them |
| `kernel` | layers that kernels compute, channels innermost |
| `linalg` | loops over tensors, and calls of kernels |
| `memref` | loop nests as functions on memory; the entry calls one after another |
| `loops` | loops over scalars, split over threads |
| `llvm` | LLVM IR |
| `object` | machine code |

The passes of each are in `fewbit/transforms/pipelines.py`. Passes of one's own run after a stage:
names of ours and of plug-ins until `linalg`, upstream's after it, or functions of a module.
"""
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr

from fewbit.analysis.cost.threads import BYTES_A_SECOND, WORTH_SHARING, WORTH_WAKING
from fewbit.ir.bindings import mlir_context, run_upstream, to_llvm_ir, to_mlir
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.kernels.isa import Isa
from fewbit.program import Program
from fewbit.signature import signature_of
from fewbit.store import WeightStore
from fewbit.targets.cpu import objects
from fewbit.targets.cpu.assert_sizes import assert_kernel_sizes, assert_tensor_sizes
from fewbit.targets.cpu.bind_memory import bind_memory
from fewbit.targets.cpu.blas import BlasCalls, use_blas
from fewbit.targets.cpu.bound_lookups import bound_lookups
from fewbit.targets.cpu.call_contractions import call_contractions
from fewbit.targets.cpu.call_kernels import call_kernels
from fewbit.targets.cpu.carry_in_place import carry_in_place
from fewbit.targets.cpu.cblas import Cblas
from fewbit.targets.cpu.collapse_loops import collapse_loops
from fewbit.targets.cpu.fill_splats import fill_splats
from fewbit.targets.cpu.guard_divisions import guard_divisions
from fewbit.targets.cpu.interface import Interface, Worth, interface_ir, interface_of
from fewbit.targets.cpu.llvm_text import booleans_as_bytes, for_older_llvm, mark_functions
from fewbit.targets.cpu.outline_loops import Outlined, copies_to_linalg, outline_loops
from fewbit.targets.cpu.place_outputs import place_outputs
from fewbit.targets.cpu.plan_memory import Arena, measure_before_collapse, plan_memory
from fewbit.targets.cpu.products import name_products, release_products
from fewbit.targets.cpu.profile import Row, count_cycles, depths_of_layers, profile_ir
from fewbit.targets.cpu.reassociate_sums import add_in_lanes, reassociate_sums
from fewbit.targets.cpu.refuse_foreign import refuse_foreign
from fewbit.targets.cpu.shapes import drop_asserts, shape_function
from fewbit.targets.cpu.share_work import share_work
from fewbit.targets.cpu.stubs import KernelCalls
from fewbit.targets.cpu.tile_loops import tile_loops
from fewbit.targets.cpu.tiles import TileObject, tile_assembly, tile_objects, tile_text
from fewbit.targets.cpu.weights import WeightImage
from fewbit.targets.kernel_stage import copy_of, entry_of, to_kernels
from fewbit.targets.own_passes import run_own_passes
from fewbit.targets.target import Inserted, Watcher
from fewbit.transforms import pipelines
from fewbit.transforms.fold_weights import fold_weights

ENTRY = "program.entry"
STAGES = ("mico", "kernel", "linalg", "memref", "loops", "llvm", "object")
OURS = ("mico", "kernel", "linalg")
"""Stages in which the program is held by xDSL; after them, by upstream's MLIR."""

FOR_ALL = "kernel"
"""The last stage that is the same for all processors."""

INSERTABLE = (*OURS, "memref", "loops")


@dataclass
class Compilation:
    program: Program
    name: str
    isa: Isa
    inserted: Inserted = field(default_factory=dict)
    watch: Watcher | None = None
    blas: Cblas | None = None
    """The library that computes products of matrices in place of kernels of ours."""
    profile: bool = False
    """Whether the library counts the cycles of each loop nest and kernel."""

    variant: bool = False
    """Whether the object is one of several in a library, for each of some processors."""
    weights: WeightImage = field(default_factory=WeightImage)

    interface: Interface = field(init=False)
    arena: Arena = field(init=False)
    outlined: list[Outlined] = field(init=False)
    calls: KernelCalls = field(init=False)
    blas_calls: BlasCalls | None = field(init=False, default=None)
    tiles: list[TileObject] = field(init=False, default_factory=list[TileObject])
    """What the object calls that other programs call too."""
    rows: list[Row] = field(init=False)
    """Of the profile."""

    def __post_init__(self) -> None:
        self.interface = interface_of(signature_of(self.program.module), self.name, self.profile)

    @property
    def symbols(self) -> dict[str, str]:
        """What the object calls the functions of the interface."""
        prefix = f"{self.interface.name}.{self.isa.name}"
        return {
            function: f"{prefix}{function.removeprefix(self.interface.name)}"
            if self.variant
            else function
            for function in self.interface.functions
        }

    def for_processor(self, isa: Isa, weights: WeightImage) -> Compilation:
        """The program after the stage `kernel`, to go on as a variant for this processor."""
        store = WeightStore()
        store.merge(self.program.store)
        watch = self.watch
        made = replace(
            self,
            program=Program(self.program.module.clone(), store, self.program.recipe),
            isa=isa,
            watch=watch and (lambda stage, text: watch(f"{stage}:{isa.name}", text)),
            variant=True,
            weights=weights,
        )
        made.interface = self.interface
        return made

    def run(self, last: str = "object", *, after: str | None = None) -> bytes:
        """Go through the stages; the object's bytes, or the text after the last stage."""
        text = ""
        first = 0 if after is None else STAGES.index(after) + 1
        for stage in STAGES[first : STAGES.index(last) + 1]:
            getattr(self, f"_{stage}")()
            self._verify(stage)
            for each in self.inserted.get(stage, ()):
                self._insert(stage, each)
            if self.watch is not None or stage == last != "object":
                text = self.text(stage)
            if self.watch is not None:
                self.watch(stage, text)
        return self.code if last == "object" else text.encode()

    def text(self, stage: str) -> str:
        if stage in OURS:
            return print_module(self.program.module)
        if stage in ("memref", "loops"):
            return str(self.module)
        tiles = self.calls.tiles()
        if stage == "llvm":
            texts = [*self.llvm_texts, tile_text(tiles)]
            return str(objects.link_modules(texts, self.interface.functions, self.isa))
        assembly = [tile_assembly(each, tiles, self.isa) for each in self.tiles]
        return "\n".join([objects.emit_assembly(self.llvm, self.isa), *assembly])

    def _insert(self, stage: str, given: str | Callable[[Any], None]) -> None:
        ours = stage in OURS
        module = self.program.module if ours else self.module
        if callable(given):
            given(module)
        elif ours:
            self._run_ours((given,))
        else:
            run_upstream(self.module, given)
        self._verify(stage)

    def _verify(self, stage: str) -> None:
        if stage in OURS:
            verify(self.program.module, stage)
        elif stage in ("memref", "loops"):
            with mlir_context():
                self.module.operation.verify()

    def _run_ours(self, specs: Sequence[str]) -> None:
        run_own_passes(self.program.module, specs)

    def _run_upstream(self, specs: Sequence[str]) -> None:
        run_upstream(self.module, ",".join(specs))

    @property
    def entry(self) -> func.FuncOp:
        return entry_of(self.program)

    def _mico(self) -> None:
        self.program = copy_of(self.program)

    def _kernel(self) -> None:
        self.program = to_kernels(self.program)

    def _linalg(self) -> None:
        if self.blas is not None:
            self._run_ours(pipelines.CPU_BLAS)
        assert_kernel_sizes(self.entry)
        self.depths = depths_of_layers(self.program.module)
        self.calls = call_kernels(self.program, self.isa)
        self._run_ours(pipelines.CPU_LINALG)
        self.program = fold_weights(self.program)
        assert_tensor_sizes(self.entry)
        if self.blas is None:
            call_contractions(self.program, self.calls)

    def _memref(self) -> None:
        entry = self.entry
        refuse_foreign(entry)
        # A name that no C name can meet.
        entry.properties["sym_name"] = StringAttr(ENTRY)
        self.shapes = shape_function(self.program.module, entry) if self.interface.dynamic else None
        drop_asserts(entry)
        carry_in_place(entry)
        bound_lookups(entry)
        fill_splats(entry)
        bind_memory(self.program, entry, self.weights)
        self.module = to_mlir(self.program.module, "bind-memory")
        self._run_upstream(pipelines.CPU_GENERIC)
        if self.blas is not None:
            name_products(self.module)
        self._run_upstream(pipelines.CPU_TENSORS)
        if self.blas is not None:
            release_products(self.module)
        self._run_upstream(pipelines.CPU_MEMORY)
        if self.blas is not None:
            self.blas_calls = use_blas(self.module, ENTRY, self.blas)
        place_outputs(self.module, ENTRY)
        copies_to_linalg(self.module)
        measure_before_collapse(self.module, ENTRY)
        self._run_upstream(("func.func(linalg-generalize-named-ops)", "cse"))
        collapse_loops(self.module, ENTRY)
        reassociate_sums(self.module)
        self.outlined = outline_loops(self.module, ENTRY)
        self.arena = plan_memory(self.module, ENTRY)

    def _loops(self) -> None:
        self.outlined = tile_loops(self.module, self.outlined)
        self._run_upstream(pipelines.CPU_LOOPS)
        share_work(self.module, ENTRY, self.outlined, wait_always=self.profile)
        self._run_upstream(("canonicalize", "cse"))
        if self.profile:
            self.rows = count_cycles(self.module, ENTRY, self.calls.stubs, self.depths)

    def _llvm(self) -> None:
        loops = {each.name for each in self.outlined}
        distinct = {each.name for each in self.outlined if not each.overlaps}
        text = mark_functions(_translate(self.module), loops, distinct, 32 * self.isa.lanes)
        # Loops are not counted one by one: most of them pass over what comes in and goes out.
        work = self.calls.seconds + self.interface.least_bytes / BYTES_A_SECOND
        worth = Worth(work / WORTH_SHARING, work / WORTH_WAKING)
        public = interface_ir(self.interface, ENTRY, self.weights.nbytes, worth, self.isa)
        self.llvm_texts = [text, public, *self.calls.texts_without_tiles()]
        if self.profile:
            self.llvm_texts.append(profile_ir(self.interface.name, self.rows, self.isa))
        if self.shapes is not None:
            self.llvm_texts.append(_translate(self.shapes))

    def _object(self) -> None:
        self.llvm = objects.link_modules(self.llvm_texts, self.interface.functions, self.isa)
        self.tiles = tile_objects(self.calls.tiles(), self.isa)
        for each in self.tiles:
            objects.hide(self.llvm, each.symbols)
        if self.variant:
            objects.hide(self.llvm, self.symbols)
        objects.optimize(self.llvm, self.isa)
        self.code = objects.emit_object(self.llvm, self.isa)


def _translate(module: Any) -> str:
    """The text of LLVM IR of loops over scalars, which are lowered in place."""
    run_upstream(module, ",".join(pipelines.CPU_METADATA))
    guard_divisions(module)
    run_upstream(module, ",".join(pipelines.CPU_LLVM))
    add_in_lanes(module)
    return booleans_as_bytes(for_older_llvm(to_llvm_ir(module)))
