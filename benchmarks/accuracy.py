"""Accuracy of LeNet on digits by recipe: after training, and after training with the rounding.

The digits that accuracy is measured on were used for nothing else. QAT starts from the float
model and trains for a third as long.
"""

from __future__ import annotations

from fewbit.data import mnist
from fewbit.data.split import Split
from fewbit.frontends import import_model
from fewbit.models import create, zoo
from fewbit.models.training import train
from fewbit.program.program import Program
from fewbit.quant import convert, prepare_qat
from fewbit.quant.quantize import quantize

EPOCHS = 30
RECIPES = ("w8a8", "[[8,6,6,4,4],[8,8,8,8,8]]", "w4a8", "w4a4", "w2a8", "w1.58a8", "w1a8")


def accuracy(program: Program, digits: Split) -> float:
    (logits,) = program.run(digits.test_x)
    return 100 * float((logits.argmax(-1) == digits.test_y).mean())


def main() -> None:
    digits = mnist()
    entry, model = zoo()["lenet"], create("lenet")
    train(model, digits.train_x, digits.train_y, epochs=EPOCHS, distort=1.0)
    inputs, shapes = entry.example_inputs(2), entry.dynamic_shapes
    program = import_model(model, inputs, shapes)
    print(f"{'recipe':28}{'PTQ %':>8}{'QAT %':>8}{'bytes':>9}")
    print(f"{'float':28}{accuracy(program, digits):8.1f}{'':8}{program.store.nbytes():9,}")
    for recipe in RECIPES:
        quantized = quantize(program, recipe)
        prepared = prepare_qat(model, recipe)
        train(prepared, digits.train_x, digits.train_y, epochs=EPOCHS // 3, lr=2e-3, distort=1.0)
        trained = quantize(import_model(convert(prepared), inputs, shapes), recipe)
        after = accuracy(trained, digits)
        before = accuracy(quantized, digits)
        print(f"{recipe:28}{before:8.1f}{after:8.1f}{quantized.store.nbytes():9,}", flush=True)


if __name__ == "__main__":
    main()
