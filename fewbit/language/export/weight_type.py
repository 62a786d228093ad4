"""What the matrices of a GGUF file consist of, by the names and numbers of llama.cpp."""

from __future__ import annotations

from enum import Enum

F32, F16 = 0, 1


class WeightType(Enum):
    """The type of a file's matrices."""

    Q4_0 = "q4_0"
    Q8_0 = "q8_0"
    F16 = "f16"
    F32 = "f32"

    @property
    def kind(self) -> int:
        """The number of a tensor's type."""
        return {"q4_0": 2, "q8_0": 8, "f16": F16, "f32": F32}[self.value]

    @property
    def file_type(self) -> int:
        """The number that says what most tensors of a file are."""
        return {"q4_0": 2, "q8_0": 7, "f16": F16, "f32": F32}[self.value]
