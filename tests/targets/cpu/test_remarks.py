"""Compiling leaves the user's stderr alone, but for what is said on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from fewbit.toolchain import objects
from fewbit.toolchain.isa import Isa
from fewbit.toolchain.remarks import without_remarks

REMARK = b"remark: <unknown>:0:0: loop not vectorized: no reason\n"
CHAIN = """
define double @chain(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi double [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %a = load double, ptr %p
  %q = fdiv double %s, %a
  %t = fadd double %q, %a
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  ret double %t
}
!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.vectorize.enable", i1 true}
!2 = !{!"llvm.loop.vectorize.width", i32 16}
"""
"""A loop that cannot be vectorized, and is asked to be."""


def test_a_loop_that_cannot_be_vectorized_is_not_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    objects.optimize(objects.parse_ir(CHAIN), Isa.host())
    assert capfd.readouterr().err == ""


def test_other_lines_pass_in_their_order(capfd: pytest.CaptureFixture[str]) -> None:
    with without_remarks():
        for part in (b"one\n", REMARK[:20], REMARK[20:], b"bar\r", REMARK, b"remark: mine\n", b"r"):
            os.write(2, part)
    os.write(2, b"!\n")
    assert capfd.readouterr().err == "one\nbar\rremark: mine\nr!\n"


def test_a_line_without_an_end_is_passed_on_at_once() -> None:
    """Such as a bar of progress, which is drawn over and over."""
    reading, writing = os.pipe()
    kept = os.dup(2)
    os.dup2(writing, 2)
    try:
        with without_remarks():
            os.write(2, b"\r 10 %")
            assert os.read(reading, 100) == b"\r 10 %"
    finally:
        os.dup2(kept, 2)
        for each in (reading, writing, kept):
            os.close(each)


def test_several_threads_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    def optimize() -> None:
        for _ in range(5):
            with without_remarks():
                os.write(2, REMARK)
                os.write(2, b"x\n")

    threads = [threading.Thread(target=optimize) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capfd.readouterr().err == "x\n" * 20


def test_processes_without_stderr() -> None:
    script = (
        "import os; os.close(2)\n"
        "from fewbit.toolchain.remarks import without_remarks\n"
        "with without_remarks(): print('done')"
    )
    results = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
    assert results.stdout == b"done\n"
