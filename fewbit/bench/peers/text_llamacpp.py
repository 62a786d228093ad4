"""llama.cpp on a GGUF file: steps and prompts, with flash attention and without."""

from __future__ import annotations

from pathlib import Path

from fewbit.bench.case import Case
from fewbit.bench.peers.llamacpp import open_tokens
from fewbit.bench.peers.peer import Peer, Session

PLAIN, FLASH = "plain attention", "flash attention"


class TextLlamaCpp(Peer):
    """llama.cpp, through its Python bindings; the case says which file it runs."""

    def packages(self, quantized: bool) -> tuple[str, ...]:
        return ("llama_cpp",)

    def variants(self, quantized: bool) -> tuple[str, ...]:
        return (FLASH, PLAIN)

    def build(self, case: Case, variant: str, folder: Path) -> None:
        """Do nothing: the file is there, for all variants."""

    def open(self, case: Case, variant: str, folder: Path, threads: int) -> Session:
        work = case.work
        assert case.gguf is not None
        return open_tokens(
            case.gguf,
            work.read_before,
            work.measured,
            threads,
            context=work.context,
            flash=variant == FLASH,
        )
