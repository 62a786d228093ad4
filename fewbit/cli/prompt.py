"""`fewbit run DIR --prompt TEXT`: how a language model goes on with a text.

Text is written to standard output as it is decoded, and nothing else; how long it took is said on
standard error. Of an encoder, it is the vector of the text.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.base.json_output import print_json
from fewbit.base.progress import say
from fewbit.cli.options import LANGUAGE_MODELS
from fewbit.cli.run_report import summary
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.runtime import Artifact
    from fewbit.runtime.generation import Generation

TOKENS = 64


def _option(name: str, explanation: str, **limits: float) -> Any:
    return typer.Option(name, help=explanation, rich_help_panel=LANGUAGE_MODELS, **limits)  # pyright: ignore[reportArgumentType]


PromptText = Annotated[
    str | None, _option("--prompt", "Go on with this text; of an encoder, print its vector.")
]
Chat = Annotated[bool, _option("--chat", "The prompt is a question, put into the chat template.")]
Tokens = Annotated[
    int | None, _option("--tokens", f"Decode up to so many; {TOKENS} if not given.", min=1)
]
Temperature = Annotated[
    float | None,
    _option("--temperature", "Draw tokens; 0, if not given, takes the likeliest.", min=0),
]
TopP = Annotated[
    float | None,
    _option("--top-p", "Draw among tokens of this probability together.", min=0, max=1),
]
Seed = Annotated[int | None, _option("--seed", "Draw the same tokens in every run.", min=0)]


@dataclass(frozen=True)
class PromptOptions:
    chat: bool = False
    tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None

    def refuse_without_prompt(self) -> None:
        for option in self.given:
            raise UsageError(f"{option} needs a prompt", hint="add --prompt TEXT")

    @property
    def given(self) -> list[str]:
        """The options that are set."""
        names = [
            each.name for each in fields(self) if getattr(self, each.name) not in (None, False)
        ]
        return [f"--{name.replace('_', '-')}" for name in names]

    def refuse_others(self, given: Sequence[str]) -> None:
        for option in given:
            raise UsageError(f"{option} and --prompt exclude each other")
        if self.temperature in (None, 0) and (self.top_p is not None or self.seed is not None):
            raise UsageError(
                "without a temperature nothing is drawn, so --top-p and --seed have no effect",
                hint="add --temperature 0.8",
            )

    def run(
        self, path: Path, prompt: str, threads: int | None, variant: str | None, as_json: bool
    ) -> None:
        from fewbit.runtime import load

        artifact = load(path)
        if variant is not None:
            artifact.use_variant(variant)
        if artifact.is_encoder:
            for option in self.given:
                raise UsageError(f"{option} is for models that decode, and this is an encoder")
            _print_embedding(artifact, prompt, threads, as_json)
            return
        generation = artifact.generate(
            prompt,
            TOKENS if self.tokens is None else self.tokens,
            chat=self.chat,
            temperature=self.temperature or 0.0,
            top_p=1.0 if self.top_p is None else self.top_p,
            seed=self.seed,
            threads=threads,
        )
        text = _stream(generation, quiet=as_json)
        if as_json:
            print_json(_plain(generation, text))
            return
        print()
        say(_summary(generation))


def _print_embedding(artifact: Artifact, prompt: str, threads: int | None, as_json: bool) -> None:
    vector = artifact.embed(prompt, threads=threads)
    if not as_json:
        print(summary("embedding", vector))
        return
    count = len(artifact.text_encoding.encode(prompt))
    print_json({"embedding": vector.tolist(), "prompt_tokens": count})


def _stream(generation: Generation, quiet: bool) -> str:
    """Return the whole text, written as it came."""
    pieces, encoding = list[str](), sys.stdout.encoding or "utf-8"
    for piece in generation:
        pieces.append(piece)
        if not quiet:
            sys.stdout.write(piece.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()
    return "".join(pieces)


def _summary(generation: Generation) -> str:
    reading, *steps = generation.step_seconds
    prompt, decoded = len(generation.prompt), len(generation.tokens)
    parts = [f"{prompt} tokens read in {reading * 1e3:.0f} ms", f"{decoded} decoded"]
    if steps:
        parts.append(f"{median(steps) * 1e3:.1f} ms each")
    if generation.finish == "context":
        parts.append("the context is full")
    return ", ".join(parts)


def _plain(generation: Generation, text: str) -> dict[str, object]:
    return {
        "text": text,
        "prompt_tokens": len(generation.prompt),
        "tokens": generation.tokens,
        "finish": generation.finish,
        "step_seconds": generation.step_seconds,
    }
