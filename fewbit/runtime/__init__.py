"""Running what was compiled: an artifact, loaded and called like a function."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast, overload

from fewbit.base.files import PathLike
from fewbit.errors import UsageError
from fewbit.program.artifact import Folder, Function, Manifest, open_folder
from fewbit.program.calls import Outputs, order_inputs
from fewbit.program.display import html_table, shorten_text, size_text

if TYPE_CHECKING:
    import numpy as np

    from fewbit.language.evaluate import TextScore
    from fewbit.runtime.decode_session import DecodeSession
    from fewbit.runtime.embedding import EmbeddingScore, TextEncoding
    from fewbit.runtime.generation import Generation, Prompt, TextModel
    from fewbit.runtime.profile import CallProfile
    from fewbit.runtime.session import Session
    from fewbit.runtime.together import Answer


class Artifact:
    """A compiled program: `art(x)` runs it, `art.folder` is where its files are."""

    def __init__(self, folder: Folder, temporary: TemporaryDirectory[str] | None = None) -> None:
        self._folder = folder
        self._temporary = temporary
        self._loaded: Any = None
        self._text_model: TextModel | None = None
        self._text_encoding: TextEncoding | None = None

    @property
    def folder(self) -> Path:
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        return self._folder.manifest

    @property
    def runner(self) -> Any:
        """What executes it here, loaded when first asked for."""
        if self._loaded is None:
            from fewbit.targets.registry import find_target

            self._loaded = find_target(self.manifest.target).load(self._folder)
        return self._loaded

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run the program and return one output, or all of them, by order and by name.

        Inputs are given in order, by name, or both; options of the target's are named, too:
        `art(input_ids=x, threads=2)`.
        """
        outputs = self.run(*arrays, **named)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, *arrays: Any, **named: Any) -> Outputs:
        """Run the program and return all outputs, however many there are."""
        ports = self._ports(named.get("function"))
        names = [tensor.name for tensor in ports.inputs]
        options = {n: v for n, v in named.items() if n in self._options and n not in names}
        inputs = {name: value for name, value in named.items() if name not in options}
        state = {tensor.updates for tensor in ports.outputs if tensor.updates is not None}
        given = order_inputs(names, arrays, inputs, state)
        return Outputs(self.runner(*given, **options), [tensor.name for tensor in ports.outputs])

    def _ports(self, function: str | None) -> Manifest | Function:
        """Return what has the inputs and outputs: of a module with several functions, the one."""
        named = (each for each in self.manifest.functions if each.name == function)
        return next(named, self.manifest)

    @property
    def _options(self) -> set[str]:
        """The names of options that a call can have."""
        parameters = signature(self.runner).parameters.values()
        return {each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY}

    def session(self, *, threads: int | None = None) -> Session:
        """Call a program that has a state step by step; the session keeps it."""
        from fewbit.language.text_files import SETTINGS
        from fewbit.runtime.session import Session

        if SETTINGS not in self.manifest.files:
            return Session(self.runner, threads)
        return self.decode_session(threads=threads)

    def decode_session(self, *, threads: int | None = None) -> DecodeSession:
        """Call a language model step by step: one sequence, or several."""
        from fewbit.runtime.decode_session import DecodeSession
        from fewbit.runtime.session import StatefulRunner

        if not isinstance(self.runner, StatefulRunner):
            raise UsageError(
                f"this was compiled for {self.manifest.target}, and text is decoded by libraries "
                "for this machine",
                hint="compile it for the target cpu",
            )
        return DecodeSession(self.runner, self.text_model.settings, threads)

    @property
    def text_model(self) -> TextModel:
        """The tokenizer, template and limits of a language model."""
        from fewbit.runtime.generation import TextModel

        if self._text_model is None:
            self._text_model = TextModel(self._folder)
        return self._text_model

    @property
    def is_encoder(self) -> bool:
        """Whether it was compiled from the checkpoint of an encoder, and makes vectors of texts."""
        from fewbit.language.text_files import ENCODING

        return ENCODING in self.manifest.files

    @property
    def text_encoding(self) -> TextEncoding:
        """The tokenizer and limits of an encoder."""
        from fewbit.runtime.embedding import TextEncoding

        if self._text_encoding is None:
            self._text_encoding = TextEncoding(self._folder)
        return self._text_encoding

    def embed(
        self, texts: str | Sequence[str], *, truncate: bool = False, threads: int | None = None
    ) -> np.ndarray[Any, Any]:
        """Return an encoder's vector of a text, [width], or of several texts, [texts, width].

        A text of more tokens than the encoder reads is refused, or cut with `truncate`.
        """
        import numpy as np

        from fewbit.runtime.embedding import embed_tokens

        encoding = self.text_encoding
        most = encoding.settings.context if truncate else None
        given = [texts] if isinstance(texts, str) else texts
        tokens = [encoding.encode(text, most=most) for text in given]
        vectors = [embed_tokens(self, each, threads) for each in tokens]
        if not vectors:
            raise UsageError("there is no text", hint="give at least one")
        return vectors[0] if isinstance(texts, str) else np.stack(vectors)

    def compare_embeddings(
        self, texts: Sequence[str], against: Artifact, *, threads: int | None = None
    ) -> EmbeddingScore:
        """Return how near an encoder's vectors of texts come to those of another."""
        from fewbit.runtime.embedding import compare_embeddings

        return compare_embeddings(self, against, texts, threads)

    @overload
    def generate(
        self,
        prompt: Prompt,
        tokens: int = 64,
        *,
        chat: bool = False,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int | None = None,
        threads: int | None = None,
    ) -> Generation: ...

    @overload
    def generate(
        self,
        prompt: list[str],
        tokens: int = 64,
        *,
        chat: bool = False,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int | None = None,
        threads: int | None = None,
    ) -> list[Answer]: ...

    def generate(
        self,
        prompt: Prompt | list[str],
        tokens: int = 64,
        *,
        chat: bool = False,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int | None = None,
        threads: int | None = None,
    ) -> Generation | list[Answer]:
        """Decode up to so many tokens behind a prompt, and return an iterator of pieces of text.

        A prompt is a text, or, with the model's chat template, a question (`chat=True`) or the
        messages of a conversation. A temperature of 0 takes the likeliest token of each step. A
        list of texts gives the answers to all, decoded together as far as the program was compiled
        for several sequences.
        """
        from fewbit.language.sampling import Sampler
        from fewbit.runtime.generation import Generation, several_texts
        from fewbit.runtime.together import decode_together

        model = self.text_model
        make_sampler = partial(Sampler, temperature, top_p, seed)
        if (texts := several_texts(prompt)) is not None:
            encoded = [model.encode(text, chat=chat) for text in texts]
            session = self.decode_session(threads=threads)
            return decode_together(model, session, encoded, tokens, make_sampler)
        sampler = make_sampler()
        given = model.encode(cast("Prompt", prompt), chat=chat)
        model.check_room(given)
        return Generation(model, self.decode_session(threads=threads), given, tokens, sampler)

    def evaluate(
        self,
        text: str | Sequence[int],
        *,
        against: Artifact | None = None,
        window: int | None = None,
        windows: int | None = None,
        threads: int | None = None,
    ) -> TextScore:
        """Return a language model's perplexity on a text, and how far it is from another model.

        The text, or its tokens, is read in windows of 512 tokens, or as many as the context holds.
        """
        from fewbit.runtime.evaluation import evaluate_text

        return evaluate_text(
            self, text, against=against, window=window, windows=windows, threads=threads
        )

    def profile(self, *, reset: bool = False) -> list[CallProfile]:
        """Return where the time of all calls went, if it was compiled with `profile=True`."""
        rows = self.runner.profile.rows()
        if reset:
            self.runner.profile.reset()
        return rows

    @property
    def variant(self) -> str | None:
        """Which variant of its code runs here, if it was compiled with `cpu_variants`."""
        return self.runner.variant

    def use_variant(self, name: str) -> None:
        """Use another variant in all calls from now on; "auto" is the best for this machine."""
        self.runner.use_variant(name)

    def __repr__(self) -> str:
        manifest = self.manifest
        described = f"{manifest.target}, {manifest.recipe or 'float'}, {size_text(self.nbytes)}"
        return f"Artifact({self._description()}, {described})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        manifest = self.manifest
        arena = manifest.arena_bytes
        rows = {
            "target": manifest.target,
            "recipe": manifest.recipe or "float",
            "size": size_text(self.nbytes),
            "weights": size_text(manifest.weight_bytes),
            "arena": "depends on shapes" if arena is None else size_text(arena),
            "folder": str(self.folder),
        }
        inputs, outputs = map(str, manifest.inputs), map(str, manifest.outputs)
        return html_table(f"Artifact {manifest.name}", inputs, outputs, rows)

    @property
    def nbytes(self) -> int:
        """The bytes of all its files."""
        paths = [self.folder / name for name in self.manifest.files]
        return sum(path.stat().st_size for path in paths if path.is_file())

    def _description(self) -> str:
        ports = self.manifest.inputs, self.manifest.outputs
        inputs, outputs = (", ".join(map(str, each)) for each in ports)
        return shorten_text(f"{self.manifest.name}({inputs}) -> ({outputs})")


def load(path: PathLike) -> Artifact:
    """Load an artifact that was compiled earlier."""
    return Artifact(open_folder(path))
