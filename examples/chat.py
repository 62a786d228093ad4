"""A conversation with a language model: compile a checkpoint once, then answer line by line.

python examples/chat.py SmolLM2-135M-Instruct.Q4_1.gguf build/smollm2 [RECIPE]
"""

from __future__ import annotations

import sys
from pathlib import Path

import fewbit


def main(checkpoint: str, folder: str, recipe: str = "w8a8h64") -> None:
    if not Path(folder).exists():
        fewbit.compile(checkpoint, output=folder, recipe=recipe)
    model = fewbit.load(folder)
    messages: list[dict[str, str]] = []
    for line in sys.stdin:
        messages.append({"role": "user", "content": line.strip()})
        answer = ""
        for piece in model.generate(messages, tokens=200):
            print(piece, end="", flush=True)
            answer += piece
        print()
        messages.append({"role": "assistant", "content": answer})


if __name__ == "__main__":
    main(*sys.argv[1:])
