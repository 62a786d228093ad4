"""The tuning database: what is kept, by whom it is found, and that a kill loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

import fewbit
from fewbit.errors import Error
from fewbit.tune.cpu import key_of, tuned_isa
from fewbit.tune.database import Database, Key, Result, Trial
from fewbit.tune.schedule import Schedule

KEY = Key("iree-cpu", "4px5px6r", "machine", "format=1")
TILES = Schedule((4, 0), (2, 16))


def test_results_are_found_by_their_key(tmp_path: Path) -> None:
    database = Database(tmp_path / "a" / "tuning.db")
    assert database.get(KEY) is None
    found = Result(KEY, TILES, 0.5, 0.01, 1e-3, 12, "analytic")
    database.put(found)
    again = Database(database.path)
    assert again.get(KEY) == found
    assert again.results("iree-cpu") == [found]
    assert again.results("cpu") == []
    assert again.holds("iree-cpu", "machine", "format=1")
    assert not again.holds("iree-cpu", "another", "format=1")
    other = Key("iree-cpu", "4px5px6r", "machine", "format=2")
    assert again.get(other) is None


def test_a_default_that_was_kept_is_a_result(tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    kept = Result(KEY, None, 1.0, 0.02, 1e-3, 12, "analytic", "the default was not beaten")
    database.put(kept)
    assert database.get(KEY) == kept


def test_trials(tmp_path: Path) -> None:
    database = Database(tmp_path / "tuning.db")
    failed = Trial(Schedule((1, 0), (1, 16)), None, "its numbers differ")
    database.add_trial(KEY, Trial(TILES, 0.9))
    database.add_trial(KEY, failed)
    database.add_trial(KEY, Trial(TILES, 0.8))
    assert database.trials(KEY) == {TILES: Trial(TILES, 0.8), failed.schedule: failed}


def test_a_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "tuning.db"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 40)
    with pytest.raises(Error, match="cannot be used"):
        Database(path).get(KEY)


def damaged(path: Path, seed: int) -> bytes:
    """The file with some bytes changed, cut or added."""
    random = Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 8, 64, 512])):
        data[random.randrange(len(data))] = random.randrange(256)
    return bytes(data[: random.choice([len(data), random.randrange(len(data))])])


def test_a_damaged_file_is_an_error_of_ours_or_is_passed_over(tmp_path: Path) -> None:
    path, broken = tmp_path / "whole.db", tmp_path / "tuning.db"
    for i in range(40):
        key = Key("iree-cpu", f"4px5px{i}r", "machine", "format=1")
        Database(path).put(Result(key, TILES, 0.5, 0.01, 1e-3, 12, "analytic"))
        Database(path).add_trial(key, Trial(TILES, 0.8))
    key, refused = Key("iree-cpu", "4px5px7r", "machine", "format=1"), 0
    for seed in range(60):
        data = damaged(path, seed)
        broken.write_bytes(data)
        for read in (Database.results, lambda d: d.get(key), lambda d: d.trials(key)):  # pyright: ignore
            read(Database(broken, forgiving=True))
            try:
                read(Database(broken))
            except Error as e:
                refused += 1
                assert e.hint == "give another with --tuning-db, or move the file away"  # noqa: PT017
    assert refused > 40


@pytest.mark.parametrize("content", [b"no database" * 400, b"", b"SQLite format 3\0" + bytes(4096)])
def test_a_compile_goes_on_without_a_damaged_database(
    content: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path))
    path = tmp_path / "tuning.db"
    path.write_bytes(content)
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    for name in ("a", "b"):
        program = fewbit.Program(fewbit.parse(text))
        artifact = fewbit.compile(program, "cpu", tmp_path / name, name="net")
        assert artifact(np.ones(4, np.float32)).tolist() == [1, 1, 1, 1]
    said = [line for line in capsys.readouterr().err.splitlines() if "tuning database" in line]
    assert len(said) <= 1
    assert all(str(path) in line for line in said)
    if content:
        assert path.read_bytes() == content
        assert said


def test_a_damaged_database_that_was_named_stops_the_compile(tmp_path: Path) -> None:
    path = tmp_path / "named.db"
    path.write_bytes(b"no database" * 400)
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    with pytest.raises(Error, match="cannot be used"):
        fewbit.compile(
            fewbit.Program(fewbit.parse(text)), "cpu", tmp_path / "net", tuning_db=str(path)
        )


def test_tiles_that_no_search_finds_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEWBIT_CACHE_DIR", str(tmp_path))
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { func.return %x : tensor<4xf32> }"
    program = fewbit.Program(fewbit.parse(text))
    for odd in (Schedule((), ()), Schedule((7,), (-0, 9)), Schedule((1 << 40,), (1, 1))):
        Database().put(Result(key_of(program), odd, 0.5, 0.01, 1e-3, 12, "measured"))
        assert tuned_isa(program, Database()) is None


WRITER = """
import sys
from pathlib import Path
from fewbit.tune.database import Database, Key, Trial
from fewbit.tune.schedule import Schedule
database, key = Database(Path(sys.argv[1])), Key("t", "s", "h", "v")
for i in range(100_000):
    database.add_trial(key, Trial(Schedule((i,), (1,)), float(i)))
    print(i, flush=True)
"""


def test_killed_while_it_writes(tmp_path: Path) -> None:
    path, key = tmp_path / "tuning.db", Key("t", "s", "h", "v")
    for wanted in (3, 40):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        said = -1
        while said < wanted:
            said = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = [int(line) for line in writer.stdout.read().split()]
        writer.wait()
        said = max([said, *rest])
        trials = Database(path).trials(key)
        assert all(Schedule((i,), (1,)) in trials for i in range(said + 1))
        assert len(trials) >= said + 1
    Database(path).add_trial(key, Trial(TILES, 1.0))
    assert TILES in Database(path).trials(key)
