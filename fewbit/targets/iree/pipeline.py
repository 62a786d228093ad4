"""The way of a program to IREE, as a value that is read from top to bottom.

| stage | the program is |
|---|---|
| `mico` | as it was given: layers, and tensors between them |
| `kernel` | layers and pooling, channels-last, and what follows a layer made part of it |
| `linalg` | named ops for convolutions and pooling, or dispatches of our kernels; loops over |
|          | tensors; weights as packed bytes |
| `source` | the text that IREE's compiler is given; weights are parameters of an archive |
| `flow`, `stream`, `hal`, `vm` | as IREE has it after these phases |

Sizes that must agree are asserted, as for the `cpu` target: IREE does not check them itself. IREE's
compiler is one process for all of its phases, so they are stages without passes of ours.
"""

from __future__ import annotations

from fewbit.passes.pipelines import IREE_LINALG, TO_KERNELS
from fewbit.pipeline.compilation import Compilation
from fewbit.pipeline.context import make_compile_context
from fewbit.pipeline.stage import Pipeline, Stage
from fewbit.program.program import Program
from fewbit.targets.iree.compiler import PHASES
from fewbit.targets.iree.parameters import Parameters
from fewbit.targets.iree.source import Source
from fewbit.toolchain.isa import Isa

ENTRY = "main"
SOURCE = "source"
"""The last stage that is ours."""


def iree_pipeline(*, kernels: bool = False) -> Pipeline:
    """Return the stages of `iree-*`: layers are IREE's own matter, or dispatches of our kernels."""
    linalg = (
        "assert-sizes{kernels=true}",
        *(["dispatch-kernels"] if kernels else []),
        *IREE_LINALG,
        "assert-sizes",
    )
    source = (
        f"rename-entry{{to={ENTRY}}}",
        "legalize-for-iree",
        "separate-dispatches",
        "bind-parameters",
        "to-iree-source",
    )
    return Pipeline(
        (
            Stage("mico"),
            Stage("kernel", (*TO_KERNELS, "fold-weights")),
            Stage("linalg", linalg),
            Stage(SOURCE, source, form="other"),
            *(Stage(phase, form="other") for phase in PHASES),
        )
    )


def to_iree(program: Program, isa: Isa | None = None) -> tuple[Source, Parameters]:
    """Return a program as IREE reads it, and its weights."""
    facts = () if isa is None else (isa,)
    ctx = make_compile_context(program.store, program.recipe, facts)
    pipeline = iree_pipeline(kernels=isa is not None)
    compilation = Compilation(pipeline, ctx, program.module.clone()).run(SOURCE)
    return compilation.module, ctx.get(Parameters)
