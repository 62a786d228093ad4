"""ViT-Tiny (Dosovitskiy et al., 2020; the size by Touvron et al., 2020) on small images.

The width and heads are the published ones. By default there are four of the twelve blocks, and
images of 32x32 in patches of 4x4.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.models.schemed import Schemed
from fewbit.models.transformer import EncoderBlock


class ViTTiny(Schemed):
    def __init__(
        self,
        image_size: int = 32,
        patch: int = 4,
        classes: int = 10,
        width: int = 192,
        depth: int = 4,
        heads: int = 3,
    ) -> None:
        super().__init__()
        patches = (image_size // patch) ** 2
        self.embed = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, patches + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(EncoderBlock(width, heads, 4 * width) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x).flatten(2).transpose(1, 2)
        token = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat([token, x], dim=1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])
