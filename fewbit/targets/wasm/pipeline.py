"""The way of a program to WebAssembly: that of a microcontroller, and vectors if there are any."""

from __future__ import annotations

from fewbit.pipeline.stage import Pipeline
from fewbit.targets.mcu.pipeline import mcu_pipeline
from fewbit.targets.wasm.engine import Engine


def wasm_pipeline(engine: Engine) -> Pipeline:
    """Return the stages for an engine."""
    pipeline = mcu_pipeline()
    replaced = {
        "call-mcu-kernels": "call-wasm-kernels",
        "translate-to-mcu-ir": "translate-to-wasm-ir",
        "mark-loops{vector-bits=32}": f"mark-loops{{vector-bits={engine.vector_bits}}}",
    }
    for stage in ("linalg", "llvm"):
        passes = tuple(replaced.get(name, name) for name in pipeline[stage].passes)
        pipeline = pipeline.with_passes(stage, passes)
    return pipeline
