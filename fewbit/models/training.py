"""Train a classifier or a language model, and measure it.

Adam with one cycle of the learning rate: enough for the zoo and for quantization-aware training.
Everything random follows the seed and leaves torch's global generator alone, so the same call gives
the same weights. It runs on one thread unless told otherwise: a batch of a small model is too
little to share, and sums then have one order, however many cores there are. A language model's
targets have one label for each token; nothing else about it is different.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from fewbit.base.progress import Meter, Step
from fewbit.base.progress import progress as show_progress
from fewbit.base.typed_torch import backward, fork_rng, manual_seed, split, update
from fewbit.errors import ShapeError, UsageError

Array = NDArray[Any] | Tensor

MEASURING_BATCH = 256
LARGEST_GRADIENT = 1.0

# Of distortion 1: radians, and shares of half an image.
LARGEST_ROTATION = 0.2
LARGEST_SHEAR = 0.15
LARGEST_STRETCH = 0.1
LARGEST_SHIFT = 0.1


def train(
    model: nn.Module,
    x: Array,
    y: Array,
    *,
    epochs: int = 20,
    lr: float = 5e-3,
    batch: int = 64,
    seed: int = 0,
    distort: float = 0.0,
    threads: int = 1,
    progress: str | None = "Training",
) -> None:
    """Train all parameters on inputs `x` and labels `y`; the model is left in evaluation mode.

    With `distort`, images are rotated, stretched, sheared and shifted at random, anew in each
    epoch; 1.0 suits digits. `progress` is the title to show while waiting, None to show nothing.
    """
    inputs, labels = _pair(x, y)
    if epochs < 1 or batch < 1:
        raise UsageError(f"epochs and batch are at least 1, not {epochs} and {batch}")
    starts = range(0, len(inputs), batch)
    steps = epochs * len(starts)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps + 1)
    with _isolated(seed, threads), _progress(progress, steps) as step:
        model.train()
        for _ in range(epochs):
            order = torch.randperm(len(inputs))
            for start in starts:
                chosen = order[start : start + batch]
                loss = _loss(model(distort_images(inputs[chosen], distort)), labels[chosen])
                optimizer.zero_grad()
                backward(loss)
                nn.utils.clip_grad_norm_(model.parameters(), LARGEST_GRADIENT)
                update(optimizer)
                schedule.step()
                step()
    model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, x: Array, y: Array) -> float:
    """The share of labels that the model finds, between 0 and 1; its mode is left as it was."""
    inputs, labels = _pair(x, y)
    was_training = model.training
    model.eval()
    right = sum(
        int((model(some).argmax(-1) == wanted).sum())
        for some, wanted in zip(
            split(inputs, MEASURING_BATCH), split(labels, MEASURING_BATCH), strict=True
        )
    )
    model.train(was_training)
    return right / labels.numel()


@contextmanager
def _isolated(seed: int, threads: int) -> Generator[None]:
    """A generator and a number of threads of our own; the caller's come back afterwards."""
    usual = torch.get_num_threads()
    with fork_rng():
        manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(usual)


def _progress(title: str | None, steps: int) -> AbstractContextManager[Step]:
    if title is None:
        return nullcontext(Meter("", steps).step)
    return show_progress(title, total=steps)


def _pair(x: Array, y: Array) -> tuple[Tensor, Tensor]:
    inputs, labels = torch.as_tensor(x), torch.as_tensor(y)
    if len(inputs) != len(labels):
        raise ShapeError(f"there are {len(inputs)} inputs but {len(labels)} labels")
    if len(inputs) == 0:
        raise ShapeError("there are no inputs")
    return inputs, labels


def _loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def distort_images(images: Tensor, strength: float) -> Tensor:
    """Each image through an affine map of its own; what comes in from outside is 0."""
    if strength == 0:
        return images

    def up_to(bound: float) -> Tensor:
        return (2 * torch.rand(len(images)) - 1) * bound * strength

    angle, shear = up_to(LARGEST_ROTATION), up_to(LARGEST_SHEAR)
    wide, high = 1 + up_to(LARGEST_STRETCH), 1 + up_to(LARGEST_STRETCH)
    across = torch.stack([wide * angle.cos(), shear - angle.sin(), up_to(LARGEST_SHIFT)], dim=1)
    down = torch.stack([angle.sin(), high * angle.cos(), up_to(LARGEST_SHIFT)], dim=1)
    places = F.affine_grid(
        torch.stack([across, down], dim=1), list(images.shape), align_corners=False
    )
    return F.grid_sample(images, places, align_corners=False)
