"""Mutated programs: whatever the text, the parser and verifier give a program or an error of ours.

No other exception, no crash, no hang. Mutations are made from a seed, so a failure is repeatable:
its message has the seed.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fewbit.errors import Error
from fewbit.ir.context import make_context
from fewbit.ir.parse import parse_module
from fewbit.ir.text import print_module
from fewbit.ir.verify import verify

TESTS = Path(__file__).parents[1]
SECONDS = 10
TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)

PROGRAMS = [
    """mico.constant @s : tensor<4xf32> = dense<[1.0, 0x7F800000, -2.5, 0.0]>
mico.constant @w : tensor<4x8x!mico.int<4>> = dense<"0x00112233445566778899AABBCCDDEEFF"> scale @s
func.func @f(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %y = mico.bitlinear(%x, @w) {act_bits = 8} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  %z = mico.softmax(%y) {dim = -1} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %z : tensor<?x4xf32>
}
""",
    """graph.subgraph @model.layers.0 on <npu>(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %y = mico.relu(%x) : tensor<1x4xf32> -> tensor<1x4xf32>
  graph.return %y : tensor<1x4xf32>
}
graph.subgraph @model(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %y = graph.call @model.layers.0(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %z = graph.transfer %y from <npu> to <cpu:1> : tensor<1x4xf32>
  graph.return %z : tensor<1x4xf32>
}
""",
    """!t = tensor<1x2x6x6xf32>
#m = affine_map<(d0, d1) -> (d1, d0)>
func.func @g(%x: !t, %w: tensor<2x2x3x3x!mico.ternary>, %k: !mico.qtensor<4x8x!mico.int<2>, scale: f32>) {
  %s = arith.constant 5.0e-1 : f32
  %y = mico.bitconv2d(%x, %w) weight_scale(%s) {stride = [2, 1], padding = [1, 1], groups = 1}
    : (!t, tensor<2x2x3x3x!mico.ternary>, f32) -> tensor<1x2x3x6xf32>
  %p = mico.maxpool2d(%y) {kernel_size = [2, 2]} : tensor<1x2x3x6xf32> -> tensor<1x2x1x3xf32>
  %c = mico.concat(%p, %p) {dim = 1} : (tensor<1x2x1x3xf32>, tensor<1x2x1x3xf32>) -> tensor<1x4x1x3xf32>
  %u, %us = mico.activation_quant(%c) {bits = 3} : (tensor<1x4x1x3xf32>) -> (tensor<1x4x1x3x!mico.int<3>>, tensor<1x4x1xf32>)
  func.return
}
""",
]


def corpus() -> list[str]:
    files = sorted(TESTS.rglob("*.mlir"))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files]
    return PROGRAMS + [text for text in texts if len(text) < 20_000]


def mutate(text: str, rng: random.Random) -> str:
    """One to four small changes of tokens, characters or lines."""
    for _ in range(rng.randint(1, 4)):
        tokens = TOKEN.findall(text) or [""]
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        match rng.randrange(8):
            case 0:
                del tokens[i]
            case 1:
                tokens.insert(i, tokens[j])
            case 2:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case 3:
                tokens[i] = rng.choice(["-1", "9", "18446744073709551616", "0x7F", '"', "?", "x"])
            case 4:
                tokens = tokens[:i]
            case 5:
                tokens = tokens[:i] + tokens[i : i + 30] * rng.randint(2, 5) + tokens[i + 30 :]
            case 6:
                at = rng.randrange(len(text) + 1)
                tokens = [
                    text[:at],
                    chr(rng.choice([0, 9, 34, 92, 127, 233, 8364, 128512])),
                    text[at:],
                ]
            case _:
                tokens[i] = rng.choice(list("<>(){}[],:=@%#!^-+*/&|")) + tokens[i]
        text = "".join(tokens)
    return text


@contextmanager
def time_limit(what: str) -> Generator[None]:
    def give_up(signum: int, frame: object) -> None:
        raise TimeoutError(f"{what} took over {SECONDS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(seed: int, texts: list[str]) -> bool:
    """Feed one mutated text; whether it was still a program."""
    rng = random.Random(seed)
    text = mutate(rng.choice(texts), rng)
    with time_limit(f"seed {seed}"):
        try:
            module = parse_module(text, "mutated.mlir", make_context())
            verify(module)
        except Error as e:
            if not e.what or e.place.file != "mutated.mlir":
                raise AssertionError(f"seed {seed}: an error that does not help: {e!r}") from e
            return False
        except Exception as e:
            raise AssertionError(f"seed {seed}: {type(e).__name__}: {e}\n{text}") from e
        printed = print_module(module)
        assert print_module(parse_module(printed)) == printed, f"seed {seed}"
        return True


def test_some_mutations() -> None:
    survived = sum(check(seed, PROGRAMS) for seed in range(300))
    assert 0 < survived < 300


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_mutations() -> None:
    texts = corpus()
    survived = sum(check(seed, texts) for seed in range(10_000))
    assert 0 < survived < 10_000
