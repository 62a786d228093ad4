"""Text to IR to text is the identity, for every op and type."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fewbit.dialects.graph import Graph
from fewbit.dialects.mico import Mico
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify
from tests.dialects.programs import OPS, functions, modules

SEPARATE = {"mico.constant", "mico.get_constant", *(op.name for op in Graph.operations)}
"""Ops that `modules` makes by itself."""

relaxed = settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(module: ModuleOp) -> None:
    verify(module)
    text = print_module(module)
    again = parse_module(text)
    verify(again)
    assert print_module(again) == text
    assert module.is_structurally_equivalent(again)
    generic = print_module(module, generic=True)
    from_generic = parse_module(generic)
    assert print_module(from_generic, generic=True) == generic
    assert module.is_structurally_equivalent(from_generic)


def test_every_op_is_made() -> None:
    defined = {op.name for dialect in (Mico, Graph) for op in dialect.operations}
    assert {name.split(" ")[0] for name in OPS} | SEPARATE == defined


@pytest.mark.parametrize("kind", OPS)
@relaxed
@given(data=st.data())
def test_op(kind: str, data: st.DataObject) -> None:
    check(ModuleOp([data.draw(functions("f", OPS[kind]))]))


@relaxed
@given(data=st.data())
def test_module(data: st.DataObject) -> None:
    check(data.draw(modules()))


@relaxed
@given(data=st.data())
def test_locations_survive(data: st.DataObject) -> None:
    module = parse_module(print_module(data.draw(modules())), "a.mlir")
    text = print_module(module, locations=True)
    assert print_module(parse_module(text), locations=True) == text
