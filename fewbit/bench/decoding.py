"""A LLaMa in the middle of a text: what a decode step is measured on.

The model has read a prompt, so its caches hold what they would in use, and tools that keep caches
of their own can read the same prompt. A step may be made again and again: it writes what it wrote.
"""

from __future__ import annotations

from typing import Any

NAME = "zoo:llama-15m-decode"
LENGTH = 128
"""Tokens before the one that is measured; the cache has place for twice as many."""


def decoding() -> tuple[Any, tuple[Any, ...]]:
    """Return the model after its prompt, and the inputs of the next step."""
    import torch

    from fewbit.models import create

    model = create(NAME.removeprefix("zoo:"))
    *before, last = prompt()
    with torch.inference_mode():
        for position, token in enumerate(before):
            model(torch.tensor([[token]]), torch.tensor([position]))
    for name, buffer in list(model.named_buffers()):
        # Tensors of inference mode cannot be traced.
        owner, _, own = name.rpartition(".")
        setattr(model.get_submodule(owner), own, buffer.detach().clone())
    return model, (torch.tensor([[last]]), torch.tensor([LENGTH]))


def prompt() -> list[int]:
    """Return tokens, the last of which is the one whose step is measured."""
    import torch

    from fewbit.models import zoo

    (tokens, _) = zoo()["llama-15m-decode"].example_inputs()
    generator = torch.Generator().manual_seed(0)
    read = torch.randint(32_000, (LENGTH,), generator=generator).numpy()
    return [*map(int, read), int(tokens)]
