"""The runtime's LLVM IR is what its C says, and the C agrees with what generates code around it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fewbit.codegen import runtime
from fewbit.codegen.detect import BITS
from fewbit.codegen.dispatch import AUTO
from fewbit.codegen.interface import ERRORS, MAX_THREADS, error_number
from fewbit.codegen.runtime import baseline_ir, runtime_ir
from fewbit.toolchain import objects
from fewbit.toolchain.elf import functions_of
from fewbit.toolchain.isa import Isa, names
from fewbit.toolchain.objects import parse_ir

FOLDER = Path(runtime.__file__).parent
TOOL = Path(__file__).parents[2] / "tools" / "runtime.py"
LINUX = [(part, family) for part in ("threads", "dispatch", "detect", "profile") for family in BITS]
ELSEWHERE = [
    ("threads", "x86_64-windows"),
    ("alone", "x86_64"),
    ("alone", "aarch64"),
    ("half", "x86_64"),
]
BARE_METAL = [("bare_metal", "rv32"), ("bare_metal", "rv64"), ("microcontroller", "rv32")]


@pytest.mark.skipif(find_spec("ziglang") is None, reason="the compiler is not installed")
def test_the_ir_is_what_the_c_says() -> None:
    done = subprocess.run(
        [sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("part", "family"), [*LINUX, *ELSEWHERE, *BARE_METAL])
def test_llvm_takes_it_for_any_processor(part: str, family: str) -> None:
    text = runtime_ir(part, family)
    parse_ir(text)
    assert f"from {part}.c" in text.splitlines()[0]
    # What a processor has is said when it becomes part of a module for one.
    for fact in ("target", "!dbg", "source_filename", "uwtable", "frame-pointer"):
        assert fact not in text


def test_every_file_is_asked_for() -> None:
    kept = {(path.stem, path.parent.name) for path in FOLDER.glob("ir/*/*.ll")}
    assert kept == {*LINUX, *ELSEWHERE, *BARE_METAL}


def test_numbers_are_those_of_the_interface() -> None:
    text = (FOLDER / "interface.h").read_text()
    codes = re.findall(r"ERROR_(\w+) = (\d+)", text)
    assert codes
    assert all(error_number(name) == int(number) for name, number in codes)
    assert {name for name, _ in codes} <= {name for name, _ in ERRORS}
    assert f"#define MAX_THREADS {MAX_THREADS}\n" in text
    assert f'#define AUTO "{AUTO}"\n' in (FOLDER / "dispatch.c").read_text()


@pytest.mark.parametrize("family", BITS)
def test_words_are_in_the_order_of_the_c(family: str) -> None:
    text = (FOLDER / "detect.c").read_text()
    x86, others = re.findall(r"enum \{ ([\w, ]+), WORDS \};", text)
    words = (x86 if family == "x86_64" else others).lower().split(", ")
    known = list(BITS[family])
    assert words[: len(known)] == known
    assert words[len(known) :] in ([], ["saved"], ["hwcap2"])


def test_only_the_system_header_knows_the_system() -> None:
    for path in FOLDER.glob("*.c"):
        calls = re.findall(
            r"\b(?:pthread_\w+|syscall|futex|sched_yield|clock_gettime)\b", path.read_text()
        )
        assert not calls, f"{path.name} calls {calls[0]} by itself"


CLEAR = """
define void @clear(ptr %x) {
  store <16 x i32> zeroinitializer, ptr %x
  ret void
}
"""
"""What LLVM writes with the widest registers that it may use."""


@pytest.mark.parametrize("processor", names())
def test_runtime_is_executed_by_every_processor_of_a_family(processor: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """It runs before, and at exit without, any look at what the processor can do."""
    isa = Isa.of(processor)
    public = {"threads.run", "threads.meet", "threads.part", "clear"}
    own = baseline_ir("threads", isa)

    def with_vectors(part: str, family: str) -> str:
        return f"{runtime_ir(part, family)}\n{CLEAR}"

    monkeypatch.setattr(runtime, "runtime_ir", with_vectors)
    made = {each: functions_of(_threads_object(each, public)) for each in (isa, isa.baseline)}
    assert {*public, "end_at_exit", "work"} - {"threads.part"} <= set(made[isa])
    assert made[isa] == made[isa.baseline]
    assert own.count('"target-features"=') == own.count("\ndefine ") > 0


def _threads_object(isa: Isa, public: set[str]) -> bytes:
    module = objects.link_modules([baseline_ir("threads", isa)], public, isa)
    objects.optimize(module, isa)
    return objects.emit_object(module, isa)


@pytest.mark.parametrize("processor", names())
def test_runtime_is_still_inlined_into_programs(processor: str) -> None:
    isa = Isa.of(processor)
    program = """
declare void @threads.barrier(ptr, i64)
define void @threads.part(ptr %inputs, ptr %outputs, ptr %arena, i64 %thread, i64 %threads) {
  call void @threads.barrier(ptr %arena, i64 %threads)
  ret void
}"""
    texts = [program, baseline_ir("threads", isa)]
    module = objects.link_modules(texts, ["threads.part", "threads.run"], isa)
    objects.optimize(module, isa)
    assert "call void @threads.barrier" not in str(module)
