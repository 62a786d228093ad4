"""`fewbit eval MODEL --text FILE`: how good a language model is, and how near it is to another.

MODEL and what it is compared with are artifacts, which run as they are, or models of any kind,
which are compiled for this machine first. A language model is evaluated on a text, an encoder by
its vectors of a text's lines beside those of `--against`; any other by its outputs on some inputs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fewbit.base.json_output import print_json
from fewbit.cli.artifact import is_artifact
from fewbit.cli.completion import complete_models
from fewbit.cli.options import LANGUAGE_MODELS, AsJson, OptionalRecipe
from fewbit.cli.text_file import read_text
from fewbit.errors import UsageError

if TYPE_CHECKING:
    from fewbit.language.evaluate import TextScore
    from fewbit.runtime import Artifact
    from fewbit.runtime.embedding import EmbeddingScore
    from fewbit.runtime.evaluation import OutputScore


def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            help="An artifact's folder; or a model, as 'fewbit compile' takes it.",
            autocompletion=complete_models,
        ),
    ],
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="The reference: another artifact or model, without the recipe.",
            autocompletion=complete_models,
        ),
    ] = None,
    recipe: OptionalRecipe = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            help="Where the model takes no text: a .npy file or 2x2xf32=1,2,3,4 for each input in "
            "order, or one .npz with all.",
        ),
    ] = None,
    random: Annotated[
        bool, typer.Option("--random", help="Random inputs; sizes not known are 1.")
    ] = False,
    text: Annotated[
        Path | None,
        typer.Option("--text", help="A text in UTF-8.", rich_help_panel=LANGUAGE_MODELS),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            min=8,
            metavar="TOKENS",
            help="Read the text in parts of so many tokens; up to 512 if not given.",
            rich_help_panel=LANGUAGE_MODELS,
        ),
    ] = None,
    windows: Annotated[
        int | None,
        typer.Option(
            "--windows",
            min=1,
            help="Read so many parts, of an encoder's text lines; all if not given.",
            rich_help_panel=LANGUAGE_MODELS,
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, help="How many threads; 1 if not given.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a language model on a text, or compare the outputs of two models."""
    if text is None:
        if window is not None or windows is not None:
            raise UsageError("--window and --windows are for a text", hint="add --text FILE")
        scores = _compare(model, against, recipe, inputs or [], random, threads)
        print_json({"outputs": _plain_outputs(scores)}) if as_json else _show_outputs(scores)
        return
    if inputs or random:
        raise UsageError("--text and inputs exclude each other")
    from fewbit.runtime.evaluation import evaluate_text

    words = read_text(text)
    artifact = _open(model, recipe, window)
    if artifact.is_encoder:
        _check_lines(against, window)
        lines = [line for line in words.splitlines() if line.strip()][:windows]
        cosines = artifact.compare_embeddings(lines, _open(against or "", None), threads=threads)
        print_json(_plain_cosines(cosines)) if as_json else _show_cosines(cosines)
        return
    reference = None if against is None else _open(against, None, window)
    score = evaluate_text(
        artifact, words, against=reference, window=window, windows=windows, threads=threads
    )
    print_json(_plain(score)) if as_json else _show(score)


def _open(model: str, recipe: str | None, window: int | None = None) -> Artifact:
    """Load an artifact, or compile a model; a language model for no more tokens than are read."""
    from fewbit.runtime import load
    from fewbit.targets.compile import compile

    if not is_artifact(model):
        return compile(model, recipe=recipe, context=_context(Path(model), window))
    if recipe is not None:
        raise UsageError(
            f"{model} is compiled already, so a recipe has no effect",
            hint="give the model that it was compiled from",
        )
    return load(model)


def _context(path: Path, window: int | None) -> int | None:
    """Return how many tokens a checkpoint is compiled for; None for what is none."""
    from fewbit.frontends.registry import find_for_file
    from fewbit.language.evaluate import WINDOW

    frontend = find_for_file(path) if path.exists() else None
    if frontend is None or not frontend.takes_context:
        return None
    if window is not None:
        return window
    from fewbit.frontends.language import open_checkpoint
    from fewbit.language.encoder_folder import is_encoder

    if is_encoder(path):
        return None
    return min(WINDOW, open_checkpoint(path).config.longest)


def _compare(
    model: str,
    against: str | None,
    recipe: str | None,
    inputs: list[str],
    random: bool,
    threads: int | None,
) -> dict[str, OutputScore]:
    from fewbit.cli.runnable import check_shapes, make_runnable, read_inputs
    from fewbit.program.calls import Outputs
    from fewbit.runtime.evaluation import compare_outputs

    if against is None:
        raise UsageError(
            "there is nothing to evaluate it by",
            hint="add --text FILE, or --against MODEL with --input FILE or --random",
        )
    how = {} if threads is None else {"threads": threads}
    both = [make_runnable(_open(*each), dict(how)) for each in ((against, None), (model, recipe))]
    arrays = read_inputs(both[0], inputs, random)
    results: list[Outputs] = []
    for each in both:
        check_shapes(each, arrays)
        results.append(Outputs(each.run(arrays), [port.name for port in each.outputs]))
    return compare_outputs(*results)


def _check_lines(against: str | None, window: int | None) -> None:
    if against is None:
        raise UsageError(
            "there is nothing to compare an encoder's vectors with", hint="add --against MODEL"
        )
    if window is not None:
        raise UsageError("an encoder reads a text line by line, so --window has no effect")


def _show_cosines(score: EmbeddingScore) -> None:
    print(f"cosine {score.mean:.6f}, minimum {score.minimum:.6f}, of {score.texts} texts")


def _plain_cosines(score: EmbeddingScore) -> dict[str, Any]:
    return {"texts": score.texts, "cosine": {"mean": score.mean, "minimum": score.minimum}}


def _show(score: TextScore) -> None:
    print(f"perplexity {score.perplexity:.4f} on {score.tokens} tokens")
    if (other := score.against) is not None:
        more = score.perplexity / other.perplexity - 1
        print(f"reference  {other.perplexity:.4f} ({more:+.2%})")
        print(f"KL divergence {other.kl:.6f}, top-1 agreement {other.top1:.2%}")


def _plain(score: TextScore) -> dict[str, Any]:
    plain: dict[str, Any] = {"tokens": score.tokens, "perplexity": score.perplexity}
    if (other := score.against) is not None:
        plain["against"] = {
            "perplexity": other.perplexity,
            "kl_divergence": other.kl,
            "top1_agreement": other.top1,
        }
    return plain


def _show_outputs(scores: dict[str, OutputScore]) -> None:
    for name, score in scores.items():
        print(f"{name}: cosine {score.cosine:.6f}, signal to noise {score.snr:.1f} dB")


def _plain_outputs(scores: dict[str, OutputScore]) -> list[dict[str, Any]]:
    return [{"name": n, "cosine": s.cosine, "snr_db": s.snr} for n, s in scores.items()]
