"""Training learns, follows its seed, and leaves the process as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fewbit.base.typed_torch import manual_seed
from fewbit.data import mnist, synthetic_audio, synthetic_images, synthetic_tokens
from fewbit.errors import ShapeError, UsageError
from fewbit.models import M5, LeNet, LlamaTiny, create
from fewbit.models.training import accuracy, distort_images, train


def test_lenet_learns_a_few_hundred_digits() -> None:
    digits = mnist()
    model = create("lenet")
    before = accuracy(model, digits.test_x, digits.test_y)
    train(model, digits.train_x[:600], digits.train_y[:600], epochs=8, batch=32, progress=None)
    assert before < 0.3
    assert accuracy(model, digits.test_x, digits.test_y) > 0.8
    assert not model.training


@pytest.mark.slow
def test_lenet_reaches_97_percent() -> None:
    digits = mnist()
    model = create("lenet")
    train(model, digits.train_x, digits.train_y, epochs=30, distort=1.0, progress=None)
    assert accuracy(model, digits.test_x, digits.test_y) >= 0.97


def test_synthetic_images_can_be_learnt() -> None:
    data = synthetic_images(n=500)
    model = create("lenet")
    train(model, data.train_x, data.train_y, epochs=4, progress=None)
    assert accuracy(model, data.test_x, data.test_y) > 0.9


def test_synthetic_audio_can_be_learnt() -> None:
    data = synthetic_audio(length=2000, classes=4, n=300)
    manual_seed(0)
    model = M5(classes=4, width=16)
    train(model, data.train_x, data.train_y, epochs=6, batch=32, progress=None)
    assert accuracy(model, data.test_x, data.test_y) > 0.9


def test_synthetic_tokens_can_be_learnt() -> None:
    data = synthetic_tokens(vocabulary=32, n=600)
    manual_seed(0)
    model = LlamaTiny(vocabulary=32, width=32, depth=1, hidden=64)
    train(model, data.train_x, data.train_y, epochs=8, progress=None)
    assert accuracy(model, data.test_x, data.test_y) > 0.6


def test_the_seed_decides_and_the_global_generator_is_left_alone() -> None:
    data = synthetic_images(n=100)
    trained: list[torch.Tensor] = []
    for seed in (1, 1, 2):
        model = create("lenet")
        manual_seed(seed + len(trained))
        before, threads = torch.get_rng_state(), torch.get_num_threads()
        train(model, data.train_x, data.train_y, epochs=1, seed=seed, distort=1.0, progress=None)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.get_num_threads() == threads
        trained.append(model.get_parameter("fc3.weight"))
    assert torch.equal(trained[0], trained[1])
    assert not torch.equal(trained[0], trained[2])


def test_accuracy_counts() -> None:
    logits = np.eye(4, dtype=np.float32)
    assert accuracy(torch.nn.Identity(), logits, np.array([0, 1, 2, 0])) == 0.75


def test_accuracy_leaves_the_mode_as_it_was() -> None:
    model = LeNet()
    data = synthetic_images(n=10)
    accuracy(model, data.test_x, data.test_y)
    assert model.training
    accuracy(model.eval(), data.test_x, data.test_y)
    assert not model.training


def test_distorted_images_are_near_the_images() -> None:
    image = torch.zeros(1, 2, 28, 28)
    image[0, 0, 10:18, 12:16] = 1.0
    image[0, 1] = 2 * image[0, 0]
    manual_seed(0)
    distorted = distort_images(image.expand(50, -1, -1, -1), 1.0)
    assert distorted.shape == (50, 2, 28, 28)
    assert len({d.numpy().tobytes() for d in distorted}) == 50
    torch.testing.assert_close(distorted[:, 1], 2 * distorted[:, 0])
    mass = distorted[:, 0].sum((1, 2)) / image[0, 0].sum()
    assert 0.6 < mass.min() < mass.max() < 1.5
    rows = (distorted[:, 0].sum(2) * torch.arange(28)).sum(1) / distorted[:, 0].sum((1, 2))
    assert 1.0 < (rows - 13.5).abs().max() < 4.0


def test_no_distortion_leaves_images_alone() -> None:
    images = torch.rand(2, 1, 28, 28)
    assert distort_images(images, 0.0) is images


def test_inputs_and_labels_go_together() -> None:
    with pytest.raises(ShapeError, match="3 inputs but 2 labels"):
        accuracy(torch.nn.Identity(), np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(ShapeError, match="no inputs"):
        train(LeNet(), np.zeros((0, 1, 28, 28)), np.zeros(0))


def test_no_epochs_is_an_error() -> None:
    data = synthetic_images(n=10)
    with pytest.raises(UsageError, match="at least 1"):
        train(LeNet(), data.train_x, data.train_y, epochs=0)
