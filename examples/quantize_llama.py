"""A small language model from PyTorch to a 4-bit program, with the module hierarchy kept.

python examples/quantize_llama.py
"""

import numpy as np
import torch

import fewbit


def main() -> None:
    entry = fewbit.models.zoo()["llama-tiny"]
    model = fewbit.models.create("llama-tiny")
    program = fewbit.import_model(model, entry.example_inputs(2), entry.dynamic_shapes)
    quantized = fewbit.quantize(program, "w4a8g16,re:.*embed.*=w8afp")

    tokens = np.array([[1, 5, 9, 2, 7]])
    with torch.no_grad():
        expected = model(torch.from_numpy(tokens)).numpy()
    (logits,) = quantized.run(tokens)
    noise = np.square(expected - logits).sum()
    print(f"{program.store.nbytes():,} bytes of weights, {quantized.store.nbytes():,} quantized")
    print(f"signal to noise: {10 * np.log10(np.square(expected).sum() / noise):.1f} dB")
    subgraphs = [op for op in quantized.module.walk() if op.name == "graph.subgraph"]
    print("subgraphs:", ", ".join(op.sym_name.data for op in subgraphs))


if __name__ == "__main__":
    main()
