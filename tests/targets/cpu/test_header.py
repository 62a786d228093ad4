"""The header as text; compilers read it in test_c_client.py."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fewbit.codegen.header import header_text
from fewbit.codegen.interface import C_TYPES, ERRORS, Interface, interface_of
from fewbit.program.signature import Signature, TensorSpec

Shaped = tuple[str, Sequence[int | None], str]


def interface(name: str, inputs: Sequence[Shaped]) -> Interface:
    specs = tuple(TensorSpec(n, tuple(s), e, np.dtype(np.float32)) for n, s, e in inputs)
    return interface_of(Signature("main", specs, specs), name)


def test_constants_and_fields() -> None:
    text = header_text(
        interface("net", [("x", [2, 3], "f32"), ("n", [None], "i8")]), 640, "a net", "0a" * 32
    )
    assert "#define NET_X_ELEMENTS 6\n#define NET_X_DIM0 2\n#define NET_X_DIM1 3\n" in text
    assert "#define NET_ARENA_BYTES 640\n" in text
    assert "  const float *x; /* 2 x 3 of f32 */\n" in text
    assert "  const int8_t *n; /* n_dim0 of i8 */\n  int64_t n_dim0;\n" in text
    assert "NET_N_ELEMENTS" not in text
    assert "NET_N_DIM0" not in text
    for number, (name, meaning) in enumerate(ERRORS):
        assert f"NET_{name} = {number}" in text
        assert meaning in text


def test_state_and_weights_are_named_for_programs_that_do_not_know_the_model() -> None:
    made = interface("net", [("x", [None, 3], "f32"), ("kept", [2, 3], "f32")])
    first, second = made.outputs
    made = replace(made, outputs=(first, replace(second, name="output1", updates="kept")))
    text = header_text(made, None, "a net", "", weights_file="net.weights")
    assert "#define NET_STATE(X) \\\n  X(kept, output1, 6)\n" in text
    assert '#define NET_WEIGHTS_FILE "net.weights"\n' in text
    plain = header_text(interface("net", []), None, "a net", "")
    assert "STATE" not in plain
    assert "NET_WEIGHTS_FILE" not in plain


def test_size_of_the_arena_is_left_out_where_it_is_not_known() -> None:
    assert "ARENA_BYTES" not in header_text(interface("net", []), None, "a net", "")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("compiler", [("gcc", "-std=c99"), ("gcc", "-std=c23"), ("g++", "-std=c++98", "-Wno-long-long"), ("g++", "-std=c++20")], ids=" ".join)  # fmt: skip
def test_compilers_take_odd_names_and_every_type(tmp_path: Path, compiler: tuple[str, ...]) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"there is no {compiler[0]}")
    standard = [c.replace("c23", "c2x") for c in compiler]
    words = [
        "class",
        "int",
        "NULL",
        "size_t",
        "x",
        "X",
        "a b",
        "9",
        "linux",
        "printf",
        "inputs",
        "net",
        "arena",
    ]
    ports: list[Shaped] = [(word, [None, 2], "f32") for word in words]
    ports += [(f"t{i}", [3], element) for i, element in enumerate(C_TYPES)]
    text = header_text(interface("net", ports), 64, "odd */ int broken;", "0a" * 32)
    text += header_text(interface("empty", []), None, "nothing in, nothing out", "")
    extension = "c" if compiler[0] == "gcc" else "cpp"
    source = tmp_path / f"odd.{extension}"
    source.write_text(text + "\nint main(void) { return (int)NET_OK + (int)EMPTY_OK; }\n")
    done = subprocess.run(
        [*standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", str(source)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
