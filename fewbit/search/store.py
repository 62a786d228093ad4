"""Evaluations that were made, kept in an SQLite file as they come.

Each is a row, written in a transaction of its own and never changed, under a key made of everything
that it depends on: the scheme of every layer, the model, the data, how it was run, versions. So a
search that is killed goes on where it was by asking again: what is there is read. Processes that
share a file keep off each other's work by locks on bytes of a file beside it, one byte for a key:
the system lets go of them when a process ends, however it ends.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock, local
from time import sleep

from fewbit.base.locks import lock_byte, unlock_byte
from fewbit.errors import Error, Place
from fewbit.quant.scheme import LayerScheme
from fewbit.search.objective import Metrics

FILE = "evaluations.sqlite"
LOCKS = "evaluations.lock"
TABLE = """
create table if not exists evaluations (
    key text primary key, schemes text, model text, data text, how text, versions text,
    metrics text, samples integer, seconds real, date text) without rowid;
"""
WAIT = 60.0
"""Seconds to wait for another process's transaction."""
LOOK_AGAIN = 0.05
OFFSETS = 1 << 40


@dataclass(frozen=True)
class Key:
    """What an evaluation depends on."""

    schemes: tuple[tuple[str, str], ...]
    """By layer, in the order of names."""
    model: str
    data: str
    how: str
    """What ran it; after training, how that was."""
    versions: str

    @staticmethod
    def of(
        schemes: Mapping[str, LayerScheme], model: str, data: str, how: str, versions: str
    ) -> Key:
        spelled = tuple(sorted((name, str(scheme)) for name, scheme in schemes.items()))
        return Key(spelled, model, data, how, versions)

    @property
    def hash(self) -> str:
        return sha256(json.dumps(asdict(self)).encode()).hexdigest()


@dataclass(frozen=True)
class Row:
    """One evaluation."""

    key: Key
    metrics: Metrics
    samples: int
    """Examples that were run for it."""
    seconds: float
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


class Store:
    """The evaluations in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        # One descriptor for all locks: closing any other of the file would let go of them.
        self._locks = os.open(folder / LOCKS, os.O_RDWR | os.O_CREAT, 0o644)
        self._held: set[int] = set()
        self._guard = Lock()
        self._own = local()
        with self._open() as file:
            file.execute("pragma journal_mode=wal")
            file.executescript(TABLE)

    def close(self) -> None:
        """Let go of the files; connections of other threads end with these."""
        if hasattr(self._own, "file"):
            self._own.file.close()
            del self._own.file
        os.close(self._locks)

    def get(self, key: Key) -> Row | None:
        query = "select metrics, samples, seconds, date from evaluations where key=?"
        with self._open() as file:
            found = file.execute(query, (key.hash,)).fetchone()
        if found is None:
            return None
        metrics, samples, seconds, date = found
        return Row(key, json.loads(metrics), int(samples), float(seconds), str(date))

    def put(self, row: Row) -> None:
        key = row.key
        values = (
            *(key.hash, json.dumps(dict(key.schemes)), key.model, key.data, key.how, key.versions),
            *(json.dumps(dict(row.metrics)), row.samples, row.seconds, row.date),
        )
        with self._open() as file, file:
            file.execute(f"insert or ignore into evaluations values ({','.join('?' * 10)})", values)

    def count(self) -> int:
        with self._open() as file:
            return int(file.execute("select count(*) from evaluations").fetchone()[0])

    @contextmanager
    def claim(self, key: Key) -> Generator[Row | None]:
        """Yield the row of a key as soon as it is there, or None and the right to make it."""
        offset = int(key.hash[:10], 16) % OFFSETS
        while (row := self.get(key)) is None and not self._lock(offset):
            sleep(LOOK_AGAIN)
        if row is not None:
            yield row
            return
        try:
            # It may have been made between the look and the lock.
            yield self.get(key)
        finally:
            self._unlock(offset)

    def _lock(self, offset: int) -> bool:
        with self._guard:
            # Locks of the system are those of a process; its threads are told apart here.
            if offset in self._held:
                return False
            try:
                lock_byte(self._locks, offset)
            except OSError:
                return False
            self._held.add(offset)
            return True

    def _unlock(self, offset: int) -> None:
        with self._guard:
            unlock_byte(self._locks, offset)
            self._held.discard(offset)

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """Yield this thread's connection: each that is opened anew costs a flush when it closes."""
        try:
            if not hasattr(self._own, "file"):
                self._own.file = sqlite3.connect(self.path, timeout=WAIT)
                self._own.file.execute("pragma synchronous=normal")
            yield self._own.file
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise Error(
                f"the evaluations cannot be used: {error}",
                place=Place(file=str(self.path)),
                hint="give another folder with -o, or move the file away",
            ) from error
