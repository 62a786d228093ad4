"""Language models under search: perplexity on a text, by compiled code.

Examples are windows of tokens, each read from an empty context. What is compiled gives the logits
of all tokens, so a window is a few calls.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fewbit.errors import UsageError
from fewbit.program.program import Program
from fewbit.search.data import Examples, SearchData
from fewbit.search.objective import Metrics, Objective
from fewbit.search.portable import pack_program, unpack_program
from fewbit.search.program_subject import quantize_program
from fewbit.search.subject import FLOAT, Schemes, Subject

if TYPE_CHECKING:
    from fewbit.runtime import Artifact

WINDOW = 128
WINDOWS = 16
"""Windows to choose by, if not said otherwise; the test part has as many."""


class TextSubject(Subject):
    """A language model from a checkpoint."""

    kind = "compiled text"

    def __init__(self, program: Program) -> None:
        self.program = program
        self._compiling = threading.Lock()
        self._float: Artifact | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"files": pack_program(self.program)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        program, self._folder = unpack_program(state["files"])
        self.__init__(program)

    def measure(self, schemes: Schemes, part: Examples, objective: Objective) -> Metrics:
        from fewbit.runtime.evaluation import evaluate_text

        with self._compiling:
            if self._float is None:
                self._float = self._compile(FLOAT)
            artifact = self._compile(schemes) if schemes else self._float
        windows = part.inputs[0]
        score = evaluate_text(
            artifact,
            [int(token) for token in windows.reshape(-1)],
            against=self._float,
            window=windows.shape[1],
        )
        assert score.against is not None
        numbers = {
            "perplexity": score.perplexity,
            "loss": float(np.log(score.perplexity)),
            "kl": score.against.kl,
            "agreement": score.against.top1,
        }
        if objective.name not in numbers:
            raise UsageError(
                f"a text has no {objective.name}", hint=f"choose one of {', '.join(numbers)}"
            )
        return numbers

    def _compile(self, schemes: Schemes) -> Artifact:
        from fewbit.targets.compile import compile

        return compile(quantize_program(self.program, schemes), "cpu", name="candidate")


def load_text_model(path: Path) -> TextSubject:
    """Import a checkpoint so that all logits of a window are given."""
    from fewbit.frontends import import_model
    from fewbit.frontends.language import open_checkpoint
    from fewbit.frontends.registry import find_for_file

    frontend = find_for_file(path) if path.exists() else None
    if frontend is None or not frontend.takes_context:
        raise UsageError(
            f"'{path}' is no language model that reads a text",
            hint="name a GGUF file or a Hugging Face folder of a decoder",
        )
    context = min(WINDOW, open_checkpoint(path).config.longest)
    return TextSubject(import_model(path, context=context, logits="all"))


def read_windows(program: Program, path: Path, windows: int | None) -> SearchData:
    """Return a text in windows: the first to choose by, as many behind them for the test."""
    from fewbit.language.samples import text_samples

    if not path.is_file():
        raise UsageError(f"there is no file '{path}'")
    text = path.read_text(encoding="utf-8")
    count = 2 * (windows or WINDOWS)
    samples = text_samples(program, text, window=WINDOW, windows=count)
    tokens = np.concatenate([np.asarray(each[0]).reshape(1, -1) for each in samples])
    half = len(tokens) // 2
    if not half:
        raise UsageError(f"the text in {path} is too short to choose by and to test on")
    first, second = tokens[:half], tokens[half : 2 * half]
    name = f"text:{path.name}"
    parts = Examples((first,), first), Examples((second,), second)
    return SearchData(name, parts[0], parts[1], usual="perplexity")
