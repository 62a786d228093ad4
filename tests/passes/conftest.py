from collections.abc import Callable

import pytest
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from fewbit.pipeline.context import make_compile_context

RunPasses = Callable[[str, str], str]


@pytest.fixture
def run_passes() -> RunPasses:
    """Run passes, written as on the command line, on a text; verify before and after."""

    def run(text: str, passes: str) -> str:
        ctx = make_compile_context()
        module = parse_module(text, ctx=ctx)
        verify(module)
        PassPipeline.parse_spec(Universe.get_multiverse().all_passes, passes).apply(ctx, module)
        verify(module, stage=passes)
        return print_module(module)

    return run
