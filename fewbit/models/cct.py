"""The Compact Convolutional Transformer (Hassani et al., 2021), CCT-2/3x2.

Two convolutions make the tokens. There is no class token: a learnt softmax over the tokens weighs
their last states (sequence pooling).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.models.schemed import Schemed
from fewbit.models.transformer import EncoderBlock


class CCT(Schemed):
    def __init__(
        self,
        image_size: int = 32,
        classes: int = 10,
        width: int = 128,
        depth: int = 2,
        heads: int = 2,
        mlp_ratio: int = 1,
    ) -> None:
        super().__init__()
        tokens = (image_size // 4) ** 2
        self.tokenizer = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
            nn.Conv2d(64, width, 3, padding=1, bias=False),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, padding=1),
        )
        self.position = nn.Parameter(torch.randn(1, tokens, width) * 0.2)
        self.blocks = nn.Sequential(
            *(EncoderBlock(width, heads, mlp_ratio * width, bias=False) for _ in range(depth))
        )
        self.norm = nn.LayerNorm(width)
        self.pool = nn.Linear(width, 1)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.tokenizer(x).flatten(2).transpose(1, 2) + self.position
        x = self.norm(self.blocks(x))
        weights = self.pool(x).softmax(dim=1)
        return self.head((weights.transpose(1, 2) @ x).squeeze(1))
