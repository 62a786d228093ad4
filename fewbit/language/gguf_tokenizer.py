"""The tokenizer of a GGUF file, as `tokenizers` has it.

The file has the tokens, and either merges (byte-level BPE, `gpt2`) or scores (SentencePiece's BPE,
`llama`), of which merges follow: any two tokens that join to a third, the highest score first. How
text is cut before is a name in the file, for which llama.cpp knows the rule; a name that is not in
`SPLITS` is refused, because other cuts are other tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fewbit.errors import UnsupportedError
from fewbit.language.text_files import TextFiles
from fewbit.language.tokenizer import require

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

Values = Callable[[str], Any]
"""A setting of the file by its name, or None."""

UNKNOWN, CONTROL, DEFINED = 2, 3, 4
"""Kinds of tokens that are not part of text."""
ENDS = ("eos", "eot", "eom")
"""What tokens are called at which an answer ends."""
DIGITS = ("smollm", "starcoder", "refact", "codeshell", "command-r")
"""Pre-tokenizers that cut digits apart, then words as GPT-2 does."""
LLAMA3 = ("llama-bpe", "llama3", "llama-v3", "smaug-bpe")
"""Pre-tokenizers of LLaMa 3: words that are tokens are not merged from parts."""
WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
SPLITS: Mapping[str, str | None] = {
    "gpt-2": None,
    "default": None,
    **dict.fromkeys(DIGITS),
    **dict.fromkeys(LLAMA3, ENDINGS + WORDS % "{1,3}"),
    "qwen2": ENDINGS + WORDS % "",
    "stablelm2": ENDINGS + WORDS % "",
}
"""How words are cut, by the name of the pre-tokenizer; None as GPT-2 does."""


def read_text(value: Values, path: Path) -> TextFiles | None:
    """Return the tokenizer and template of a file; None where it has no tokens."""
    kind, tokens = value("tokenizer.ggml.model"), value("tokenizer.ggml.tokens")
    if tokens is None or kind in (None, "no_vocab", "none"):
        return None
    require("tokenizers")
    if kind == "gpt2":
        tokenizer = _make_byte_level(value, tokens)
    elif kind == "llama":
        tokenizer = _make_sentence_piece(value, tokens)
    else:
        raise UnsupportedError(
            f"the tokenizer '{kind}' is not read", hint="known: gpt2 (byte-level BPE), llama"
        )
    _add_special(tokenizer, tokens, value("tokenizer.ggml.token_type") or [])
    _begin_with(tokenizer, value, tokens, default=kind == "llama")
    ends = [value(f"tokenizer.ggml.{name}_token_id") for name in ENDS]
    special = {
        f"{theirs}_token": tokens[number]
        for theirs, ours in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))
        if (number := value(f"tokenizer.ggml.{ours}_token_id")) is not None
    }
    numbers = dict.fromkeys(int(end) for end in ends if end is not None)
    return TextFiles(tokenizer.to_str(), value("tokenizer.chat_template"), tuple(numbers), special)


def _make_byte_level(value: Values, tokens: Sequence[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models

    texts: list[str] = value("tokenizer.ggml.merges") or []
    merges = [(left, right) for left, _, right in (text.partition(" ") for text in texts)]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    pre = str(value("tokenizer.ggml.pre") or "default")
    whole = pre in LLAMA3
    model = models.BPE(vocab=vocabulary, merges=merges, fuse_unk=False, ignore_merges=whole)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = make_splitter(pre)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def make_splitter(name: str) -> PreTokenizer:
    """Return what cuts text into words by the rule of a name."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Split
    from tokenizers.pre_tokenizers import Sequence as Steps

    if name not in SPLITS:
        raise UnsupportedError(
            f"the tokenizer cuts text as '{name}', which is not known",
            hint=f"known: {', '.join(SPLITS)}; give the model's folder with its tokenizer.json",
        )
    pattern = SPLITS[name]
    if pattern is not None:
        words = Split(Regex(pattern), behavior="isolated")
        return Steps([words, ByteLevel(add_prefix_space=False, use_regex=False)])
    words = ByteLevel(add_prefix_space=False)
    return Steps([Digits(individual_digits=True), words]) if name in DIGITS else words


def _make_sentence_piece(value: Values, tokens: Sequence[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    scores = value("tokenizer.ggml.scores")
    if scores is None:
        raise UnsupportedError("the tokenizer has neither merges nor scores")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    unknown = value("tokenizer.ggml.unknown_token_id") or 0
    model = models.BPE(
        vocab=vocabulary,
        merges=merges_by_score(vocabulary, scores),
        unk_token=tokens[unknown],
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    begins = value("tokenizer.ggml.add_space_prefix") is not False
    spaces = normalizers.Replace(" ", "▁")
    prefix = [normalizers.Prepend("▁"), spaces]
    tokenizer.normalizer = normalizers.Sequence(prefix) if begins else spaces
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if begins else steps)
    return tokenizer


def merges_by_score(
    vocabulary: Mapping[str, int], scores: Sequence[float]
) -> list[tuple[str, str]]:
    """Return all pairs of tokens that join to a token, the highest score of that first."""
    merges: list[tuple[float, int, int, tuple[str, str]]] = []
    for token, number in vocabulary.items():
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocabulary and right in vocabulary:
                order = -scores[number], vocabulary[left], vocabulary[right]
                merges.append((*order, (left, right)))
    return [pair for *_, pair in sorted(merges)]


def _add_special(tokenizer: Any, tokens: Sequence[str], kinds: Sequence[int]) -> None:
    """Have tokens that are not text found before anything is cut."""
    from tokenizers import AddedToken

    for token, kind in zip(tokens, kinds, strict=False):
        if kind in (UNKNOWN, CONTROL):
            tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True)])
        elif kind == DEFINED:
            tokenizer.add_tokens([AddedToken(token, normalized=False)])


def _begin_with(tokenizer: Tokenizer, value: Values, tokens: Sequence[str], default: bool) -> None:
    """Have texts begin with the token that the file says, if it does."""
    from tokenizers.processors import TemplateProcessing

    number, wanted = value("tokenizer.ggml.bos_token_id"), value("tokenizer.ggml.add_bos_token")
    if number is None or not (default if wanted is None else wanted):
        return
    begin = tokens[number]
    tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A $B", special_tokens=[(begin, number)]
    )
