"""What a target is: a pipeline of stages, the facts it begins with, and what runs the result.

A target says everything about itself: its options, what tunes it, what there is to see of its
artifacts, which ops it measures. `targets/registry.py` lists all of them by name. Nothing else
knows one by its name: the command line, `fewbit.compile`, `fewbit.load`, `fewbit tune`, benchmarks
and the documentation ask the registry. `compile` and `lower` are the same compilation, run to its
end or to a stage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.base.plugins import make_from
from fewbit.base.target_name import TargetName
from fewbit.errors import UsageError
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.context import make_compile_context
from fewbit.pipeline.driver import Given, Inserted, Observer, Watcher
from fewbit.pipeline.stage import Pipeline
from fewbit.program.artifact import Folder
from fewbit.program.float_weights import FloatWeights
from fewbit.program.program import Program
from fewbit.targets.bench import Bench
from fewbit.targets.options import Options, TunedOptions
from fewbit.targets.tuner import KnownSettings, find_database_file
from fewbit.targets.view import LayerModel, Seen, View

if TYPE_CHECKING:
    from fewbit.cost.cycles.layers import IntegerLayer
    from fewbit.targets.probe import Found


@dataclass(frozen=True)
class Request:
    """What is asked of a target."""

    target: str
    """As the user wrote it, `cpu:riscv64`."""
    name: str = "model"
    """What the result is called."""
    passes: Inserted = field(default_factory=dict[str, Sequence[Given]])
    watch: Watcher | None = None
    options: Options = field(default_factory=Options)
    """The target's own, of its class of options; a plain one where nothing was given."""
    float_weights: FloatWeights | None = None
    """The weights of a quantized program that have no few bits; the manifest names them."""
    observers: Sequence[Observer] = ()
    """Told of every pass."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What goes with the program, by the names of files; every artifact has them."""

    @property
    def detail(self) -> str:
        """What stands behind the colon."""
        return TargetName.parse(self.target).detail


class Target(ABC):
    """A kind of machine or runtime that programs are compiled for."""

    name: str
    """Under which the registry has it."""
    about: str = ""
    """What is made for it, in a few words."""
    see: str = ""
    """A link to its page, in Markdown."""
    detail: str = ""
    """What may follow its name and a colon, as the help writes it: PROCESSOR."""
    details: tuple[str, ...] = ()
    """What may follow it, where that can be listed; the shell offers it."""
    is_simulated: bool = False
    fixes_sizes: bool = False
    """Whether all sizes are known before a run: language models then decode in steps of a token."""
    fixed_point: bool = False
    """Whether a program without floats between its layers has integers as factors, too."""
    joins_host: bool = False
    """Whether it follows a program that is split between its device and a host, as one artifact."""
    options: type[Options] = Options
    """The keyword arguments that `fewbit.compile` hands to it, and their kinds."""
    parts: tuple[str, ...] = ()
    """Names that may follow a stage's, `kernel:x86-64-v3`, where it has several texts."""
    views: tuple[View, ...] = ()
    """What `fewbit inspect` shows of its artifacts."""
    benches: tuple[Bench, ...] = ()
    """Ops that `fewbit bench` measures on it."""
    profile_option: str | None = None
    """The flag with which an artifact counts the time of each layer, if there is one."""

    tuner: str | None = None
    """The place of its tuner, `package.module:Class`, if it has one."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    @abstractmethod
    def pipeline(self, request: Request) -> Pipeline:
        """Return the stages that a program goes through."""

    @abstractmethod
    def facts(self, program: Program | None, request: Request) -> Sequence[object]:
        """Return what passes must know of the target and of what was asked for.

        Without a program, which `fewbit-opt` has not where a text is no longer one, only that.
        """

    @abstractmethod
    def check(self, request: Request) -> None:
        """Refuse what cannot be compiled, before any work is done."""

    @abstractmethod
    def write(self, made: Compilation, program: Program, request: Request, output: Path) -> Folder:
        """Write an artifact of a program that has gone through all stages."""

    @abstractmethod
    def load(self, folder: Folder) -> Any:
        """Return what runs an artifact on this machine: a function of arrays that gives a tuple."""

    def probe(self, name: str) -> Found:
        """Return whether it works on this machine: a layer is compiled, run and compared."""
        from fewbit.targets.probe import probe_layer

        return probe_layer(name)

    def spell(self, name: str) -> str:
        """Return the one way to write a name of the target that has several: `cpu:aarch64`."""
        return name

    def find_obstacle(self, name: str) -> str | None:
        """Return why this machine cannot run what is compiled for that name, if it cannot.

        It is asked before work, so it looks for devices and computes nothing on them.
        """
        return None

    def is_fixed_point(self, name: str) -> bool:
        """Return `fixed_point` for a name of the target, where it differs by that."""
        return self.fixed_point

    def load_tuner(self) -> KnownSettings:
        """Return the tuner of its programs."""
        if self.tuner is None:
            raise UsageError(f"there is no autotuning for {self.name}")
        return make_from(self.tuner, "tuner")

    def known(self, program: Program, request: Request) -> Any:
        """Return what autotuning found for a program, as the tuner has it, if it did."""
        if self.tuner is None:
            return None
        given = TunedOptions.of(request).tuning_db
        file = find_database_file(given)
        if file is None:  # before the tuner is loaded, whose package is large
            return None
        return self.load_tuner().known(program, request, file, named=bool(given))

    def summarize(self, folder: Folder) -> Seen | None:
        """Return what there is to say of an artifact beside what its manifest has."""
        return None

    def model_layers(self, layers: Sequence[IntegerLayer]) -> LayerModel | None:
        """Return cycles of layers on the target's machines, where there is a model of them."""
        return None

    def begin(self, program: Program, request: Request) -> Compilation:
        """Return a compilation in which no stage has run yet."""
        ctx = make_compile_context(program.store, program.recipe, self.facts(program, request))
        return Compilation(
            self.pipeline(request),
            ctx,
            program.module.clone(),
            request.passes,
            request.watch,
            request.observers,
        )

    def compile(self, program: Program, request: Request, output: Path) -> Folder:
        """Go through all stages and write an artifact."""
        return self.write(self.begin(program, request).run(), program, request, output)

    def lower(self, program: Program, stage: str, request: Request) -> str:
        """Return the text of a program after a stage."""
        return self.begin(program, request).run(stage).text

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of all stages, which no option changes."""
        return self.default_pipeline.names

    @property
    def default_pipeline(self) -> Pipeline:
        """The pipeline where nothing special is asked for."""
        return self.pipeline(Request(""))

    def suffix(self, stage: str) -> str:
        """Return the ending of a file with the text after a stage."""
        return self.default_pipeline[stage].suffix

    def reads(self, path: Path) -> bool:
        """Return whether the target's own compiler takes this file as it is."""
        return False

    def compile_file(self, path: Path, request: Request, output: Path) -> Folder:
        """Write an artifact of a file that it `reads`."""
        raise NotImplementedError

    def check_stage(self, stage: str) -> None:
        self.default_pipeline.until(stage)

    def check_insertable(self, stage: str) -> None:
        places = [each.name for each in self.default_pipeline.stages if each.form != "other"]
        if stage not in places:
            raise UsageError(
                f"no pass can be inserted after '{stage}'",
                hint=f"stages for passes are {', '.join(places)}",
            )
