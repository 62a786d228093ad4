"""The store: rows under exact keys, claims that processes and threads respect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from fewbit.errors import Error
from fewbit.quant.scheme import LayerScheme
from fewbit.search.store import FILE, Key, Row, Store


def key(**schemes: str) -> Key:
    spelled = {name: LayerScheme.of(text) for name, text in schemes.items()}
    return Key.of(spelled, "model", "data", "how", "1")


def test_a_row_is_what_was_put(tmp_path: Path) -> None:
    store = Store(tmp_path)
    row = Row(key(a="w4a8"), {"accuracy": 0.5, "loss": 1.25}, 100, 0.5)
    store.put(row)
    assert store.get(row.key) == row
    assert Store(tmp_path).get(row.key) == row
    assert store.count() == 1


@pytest.mark.parametrize("field", ["model", "data", "how", "versions"])
def test_everything_is_in_the_key(field: str, tmp_path: Path) -> None:
    store, known = Store(tmp_path), key(a="w1a8", b="w8a8")
    store.put(Row(known, {"loss": 1.0}, 1, 0.0))
    assert store.get(replace(known, **{field: "other"})) is None


def test_schemes_that_differ_in_anything_are_other_keys() -> None:
    """MiCo's cache took 1 and 1.58 bits for the same."""
    texts = ("w1a8", "w1.58a8", "w2a8", "w3a8", "w3a8-mse", "w4a8g32", "w4a8", "w4a4", "fp")
    assert len({key(a=text).hash for text in texts}) == len(texts)
    assert key(a="w1a8", b="w2a8") == key(b="w2a8", a="w1a8")
    assert key(a="w1a8", b="w2a8") != key(a="w2a8", b="w1a8")


def test_a_row_is_never_changed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(Row(key(a="w4a8"), {"loss": 1.0}, 1, 0.0))
    store.put(Row(key(a="w4a8"), {"loss": 2.0}, 1, 0.0))
    found = store.get(key(a="w4a8"))
    assert found is not None
    assert found.metrics == {"loss": 1.0}


def test_threads_make_a_row_once(tmp_path: Path) -> None:
    store, made = Store(tmp_path), list[int]()

    def work() -> None:
        with store.claim(key(a="w4a8")) as row:
            if row is None:
                made.append(1)
                time.sleep(0.05)
                store.put(Row(key(a="w4a8"), {"loss": 1.0}, 1, 0.0))

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


HOLD = """
import sys, time
from pathlib import Path
from fewbit.quant.scheme import LayerScheme
from fewbit.search.store import Key, Store
key = Key.of({"a": LayerScheme.of("w4a8")}, "model", "data", "how", "1")
with Store(Path(sys.argv[1])).claim(key) as row:
    print("claimed", row, flush=True)
    time.sleep(60)
"""


def test_a_claim_ends_with_its_process_however_that_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "claimed None\n"
        got = list[Row | None]()

        def wait() -> None:
            with Store(tmp_path).claim(key(a="w4a8")) as row:
                got.append(row)

        waiting = Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        assert got == []
        os.kill(other.pid, signal.SIGKILL)
        waiting.join(timeout=10)
        assert got == [None]


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is no database, and long enough to be looked at")
    with pytest.raises(Error, match="evaluations cannot be used"):
        Store(tmp_path)
