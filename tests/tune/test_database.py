"""The tuning database: what is kept, by whom it is found, and that a kill loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fewbit.errors import Error
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
