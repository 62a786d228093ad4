"""fewbit itself, as one that reads text: the artifact of the case, with its caches."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fewbit.bench.case import COMPILED, Case
from fewbit.bench.peers.compiled import Compiled
from fewbit.bench.peers.peer import Session
from fewbit.runtime import load


class TextCompiled(Compiled):
    """fewbit's steps and prompts."""

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        work = case.work
        session = load(case.folder / COMPILED).decode_session(threads=threads)
        before = work.read_before
        if before:
            session(np.array([before]), np.array([0]))
        tokens, position = np.array([work.measured]), np.array([len(before)])
        last = [np.zeros(0, np.float32)]

        def run() -> None:
            last[0] = session(tokens, position)

        return Session(run, lambda: [last[0].reshape(-1)])
