"""The Keyword Transformer (Berg et al., 2021) in its smallest size, KWT-1.

Each of 98 frames of 40 MFCCs is a token. Normalization follows each half of a block, and the class
token's last state is classified.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fewbit.models.schemed import Schemed
from fewbit.models.transformer import EncoderBlock


class KWT(Schemed):
    def __init__(
        self,
        frames: int = 98,
        coefficients: int = 40,
        classes: int = 35,
        width: int = 64,
        depth: int = 12,
        heads: int = 1,
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(coefficients, width)
        self.class_token = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, frames + 1, width))
        self.blocks = nn.Sequential(
            *(EncoderBlock(width, heads, 4 * width, pre=False, bias=False) for _ in range(depth))
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        token = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat([token, self.embed(x)], dim=1) + self.position
        return self.head(self.norm(self.blocks(x)[:, 0]))
