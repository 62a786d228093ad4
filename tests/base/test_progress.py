"""Progress: nothing for quick work, lines for logs, a bar for terminals, silence when asked."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from fewbit.base import progress
from fewbit.base.progress import Meter, duration, say


@pytest.fixture(autouse=True)
def normal_verbosity() -> Iterator[None]:
    progress.set_verbosity(progress.NORMAL)
    yield
    progress.set_verbosity(progress.NORMAL)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_tells_share_count_and_time_left() -> None:
    clock = Clock()
    meter = Meter("Packing", 8, clock)
    assert meter.line() == "Packing: 0% (0 of 8)"
    clock.now += 3
    meter.step(2)
    assert meter.line() == "Packing: 25% (2 of 8), about 9 s left"
    meter.step(6)
    assert meter.line() == "Packing: 100% (8 of 8), about 0 s left"


def test_a_line_without_a_total_tells_what_is_known() -> None:
    clock = Clock()
    meter = Meter("Reading", None, clock)
    clock.now += 70
    assert meter.line() == "Reading: 1 min 10 s so far"
    meter.step()
    assert meter.line() == "Reading: 1 done, 1 min 10 s so far"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (125, "2 min 05 s"), (3725, "1 h 02 min")]
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_quick_work_shows_nothing() -> None:
    stream = io.StringIO()
    with progress.progress("Packing", total=2, stream=stream) as step:
        step(2)
    assert stream.getvalue() == ""


def test_long_work_shows_plain_lines_off_a_terminal() -> None:
    stream = io.StringIO()
    with progress.progress("Packing", 4, stream=stream, show_after=0.01, line_every=0.02) as step:
        step()
        wait_until(lambda: stream.getvalue().count("Packing: 25% (1 of 4)") >= 2)
    lines = stream.getvalue().splitlines()
    assert lines[-1] == "Packing: ended after 0 s"
    assert "\x1b" not in stream.getvalue()


def test_quiet_is_silent() -> None:
    progress.set_verbosity(progress.QUIET)
    stream = io.StringIO()
    with progress.progress("Packing", stream=stream, show_after=0.0):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_only_the_outermost_is_shown() -> None:
    outer, inner = io.StringIO(), io.StringIO()
    with progress.progress("Outer", stream=outer, show_after=0.0):
        with progress.progress("Inner", total=3, stream=inner, show_after=0.0) as step:
            step()
        wait_until(lambda: "Outer" in outer.getvalue())
    assert inner.getvalue() == ""


def test_it_ends_when_the_work_fails() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyError), progress.progress("Packing", stream=stream):
        raise KeyError
    with progress.progress("Again", stream=stream, show_after=0.0):
        wait_until(lambda: "Again" in stream.getvalue())


def test_notes_follow_the_verbosity(capsys: pytest.CaptureFixture[str]) -> None:
    say("always")
    say("detail", progress.VERBOSE)
    progress.set_verbosity(progress.VERBOSE)
    say("more", progress.VERBOSE)
    progress.set_verbosity(progress.QUIET)
    say("never")
    assert capsys.readouterr() == ("", "always\nmore\n")


@pytest.mark.parametrize("no_colour", [False, True])
def test_a_terminal_gets_a_bar(no_colour: bool) -> None:
    output = run_in_terminal(
        "from fewbit.base.progress import progress; import time\n"
        "with progress('Packing', total=4, show_after=0.05) as step:\n"
        "    step(3); time.sleep(0.4); step(1)\n",
        {"NO_COLOR": "1"} if no_colour else {},
    )
    assert "Packing" in output
    assert "━" in output
    assert "100%" in output
    assert ("\x1b[38" in output or "\x1b[35" in output or "\x1b[32" in output) != no_colour


def run_in_terminal(code: str, environment: dict[str, str]) -> str:
    """Return what Python running `code` writes to a terminal on stderr."""
    ours, theirs = pty.openpty()
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=theirs,
        env={**inherited, "TERM": "xterm-256color", "COLUMNS": "100", **environment},
    )
    os.close(theirs)
    output = b""
    try:
        while chunk := os.read(ours, 65536):
            output += chunk
    except OSError:
        pass  # Linux reports the end of a terminal as an input/output error
    assert process.wait() == 0
    os.close(ours)
    return output.decode()


def wait_until(done: object, limit: float = 10.0) -> None:
    assert callable(done)
    end = time.monotonic() + limit
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)
