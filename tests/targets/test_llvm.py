"""Native code for this machine."""

from __future__ import annotations

import pytest

from fewbit.toolchain.llvm import emit_object, host_features, host_processor


def test_the_host_is_known() -> None:
    assert host_processor()
    assert all(isinstance(name, str) for name in host_features())


def test_ir_becomes_an_object_file() -> None:
    code = emit_object("define i32 @one() {\n ret i32 1\n}")
    assert b"one" in code


def test_bad_ir_is_refused() -> None:
    with pytest.raises(RuntimeError, match="expected type"):
        emit_object("define nonsense")
