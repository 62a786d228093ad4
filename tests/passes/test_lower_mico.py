"""The whole pipeline: real programs, and MLIR's own verifier on what comes out."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fewbit.interpreter import interpret
from fewbit.ir.locations import place_of
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.walk import nested_ops
from fewbit.models import lenet_text
from fewbit.passes.pipelines import LOWER_MICO
from fewbit.universe import UNIVERSE
from tests.dialects.programs import OPS, functions
from tests.passes.lowering import RANDOM, assert_same, check, lower, mico_ops

PLAIN = {"builtin", "func", "mico", "linalg", "tensor", "arith", "math"}
IMAGE = np.random.default_rng(0).standard_normal((1, 1, 28, 28), dtype=np.float32)


def lenet() -> ModuleOp:
    return parse_module(lenet_text(), "lenet.mlir")


def test_every_pass_of_the_pipeline_exists() -> None:
    for name in LOWER_MICO:
        assert UNIVERSE.all_passes[name]().name == name


def test_lenet_is_the_same_to_the_bit() -> None:
    module = lenet()
    (expected,) = interpret(module, IMAGE)
    (given,) = check(module, IMAGE)
    np.testing.assert_array_equal(given, expected)
    assert mico_ops(module) == {"mico.constant", "mico.get_constant"}
    assert {op.dialect_name() for op in nested_ops(module)} == PLAIN


def test_lenet_is_the_same_after_each_pass() -> None:
    module = lenet()
    (expected,) = interpret(module, IMAGE)
    for name in LOWER_MICO:
        lower(module, name)
        np.testing.assert_array_equal(interpret(module, IMAGE)[0], expected)


def test_lowered_text_reads_back() -> None:
    module = lower(lenet())
    for generic in (False, True):
        text = print_module(module, generic=generic)
        again = parse_module(text)
        assert print_module(again, generic=generic) == text
        np.testing.assert_array_equal(interpret(again, IMAGE)[0], interpret(module, IMAGE)[0])


def test_new_ops_are_located_where_the_old_ones_were() -> None:
    before = {place_of(op).line for op in nested_ops(lenet()) if op.dialect_name() == "mico"}
    module = lower(lenet())
    loops = [op for op in nested_ops(module) if op.name == "linalg.generic"]
    assert len(loops) > 20
    for op in loops:
        assert place_of(op).file == "lenet.mlir"
        assert place_of(op).line in before
        for inner in nested_ops(op):
            assert place_of(inner).line == place_of(op).line


@cache
def mlir_context() -> Any:
    ir: Any = import_module("torch_mlir.ir")
    everything: Any = import_module("torch_mlir._mlir_libs._mlirRegisterEverything")
    context, registry = ir.Context(), ir.DialectRegistry()
    everything.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    return context


def verify_by_mlir(module: ModuleOp) -> None:
    ir: Any = import_module("torch_mlir.ir")
    lower(module, "constants-to-arith")
    assert not mico_ops(module)
    parsed = ir.Module.parse(print_module(module, generic=True), mlir_context())
    assert parsed.operation.verify()


def test_mlir_accepts_lenet() -> None:
    verify_by_mlir(lower(lenet()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(OPS))
@RANDOM
@given(data=st.data())
def test_mlir_accepts_every_op(kind: str, data: st.DataObject) -> None:
    verify_by_mlir(lower(ModuleOp([data.draw(functions("main", OPS[kind]))])))


@pytest.mark.slow
def test_iree_computes_the_same() -> None:
    compiler: Any = import_module("iree.compiler")
    runtime: Any = import_module("iree.runtime")
    module = lenet()
    (expected,) = interpret(module, IMAGE)
    lower(module, *LOWER_MICO, "constants-to-arith")
    binary = compiler.compile_str(
        print_module(module, generic=True),
        target_backends=["llvm-cpu"],
        extra_args=["--iree-llvmcpu-target-cpu=host"],
    )
    loaded = runtime.load_vm_flatbuffer(binary, driver="local-sync")
    assert_same(np.asarray(loaded.forward(IMAGE).to_host()), expected)
