# pyright: basic
"""The network in Keras 3, on the JAX backend. Images are N x H x W x C."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
from keras import layers
from weights import EPS, Tree


def network(weights: Tree) -> keras.Model:
    model = keras.Sequential(
        [
            layers.Input((16, 16, 3), name="image"),
            layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv1"),
            layers.BatchNormalization(epsilon=EPS, name="norm1"),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu", name="conv2"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(10, name="fc"),
        ]
    )
    for name, tree in weights.items():
        model.get_layer(name).set_weights(list(tree.values()))
    return model
