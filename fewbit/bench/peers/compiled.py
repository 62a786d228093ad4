"""fewbit itself: the artifact of the case."""

from __future__ import annotations

from pathlib import Path

from fewbit.bench.case import COMPILED, Case
from fewbit.bench.peers.peer import Peer, Session
from fewbit.runtime import load


class Compiled(Peer):
    """fewbit, as one of the tools."""

    makes_files = False

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ()

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return ("compiled",)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        """Do nothing: the case has its files already."""

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        call = load(case.folder / COMPILED).runner.prepare(*case.inputs, threads=threads)
        return Session(call.run, lambda: call.own_outputs)
