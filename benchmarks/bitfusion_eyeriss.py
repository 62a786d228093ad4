"""BitFusion beside Eyeriss: `python benchmarks/bitfusion_eyeriss.py --sources DIR`.

The paper's networks, costed by fewbit's model of the accelerator, beside what the authors
published of their own simulator and of Eyeriss: `results/bitfusion-eyeriss-sim-sweep.csv` and
`results/eyeriss_results.csv` of a checkout of github.com/hsharma35/bitfusion. Without `--sources`,
fewbit's figures alone are printed.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import mean

from fewbit.targets.bitfusion.accelerator import EYERISS, Accelerator
from fewbit.targets.bitfusion.layer import Layer
from fewbit.targets.bitfusion.schedule import Cost, cost

BATCH = 16

Network = dict[str, Layer]


def conv(
    inputs: int,
    outputs: int,
    size: int,
    kernel: int,
    act: int,
    weight: int,
    first: bool = False,
    stride: int = 1,
) -> Layer:
    """A square convolution with an output of `size`; the first of a network is unfolded."""
    return Layer(
        BATCH,
        inputs,
        outputs,
        act,
        weight,
        (size, size),
        (kernel, kernel),
        (stride, stride),
        im2col=first,
    )


def fc(inputs: int, outputs: int, act: int, weight: int) -> Layer:
    return Layer(BATCH, inputs, outputs, act, weight)


def alexnet() -> Network:
    """Twice as wide as usual, as WRPN has it; two towers."""
    towers: Network = {}
    for tower in "ab":
        towers |= {
            f"conv1_{tower}": conv(3, 96, 55, 11, 8, 8, first=True, stride=4),
            f"conv2_{tower}": conv(96, 256, 27, 5, 4, 4),
            f"conv3_{tower}": conv(512, 384, 13, 3, 4, 4),
            f"conv4_{tower}": conv(384, 384, 13, 3, 4, 4),
            f"conv5_{tower}": conv(384, 256, 13, 3, 4, 4),
        }
    return towers | {
        "fc1": fc(6 * 6 * 512, 8192, 4, 4),
        "fc2": fc(8192, 8192, 4, 4),
        "fc3": fc(8192, 1000, 8, 8),
    }


def quantized_vgg(wide: int, act: int, weight: int, first_weight: int) -> Network:
    """SVHN's and CIFAR-10's networks: six convolutions and three dense layers."""
    return {
        "conv0": conv(3, wide, 32, 3, 8, first_weight, first=True),
        "conv1": conv(wide, wide, 32, 3, act, weight),
        "conv2": conv(wide, 2 * wide, 16, 3, act, weight),
        "conv3": conv(2 * wide, 2 * wide, 16, 3, act, weight),
        "conv4": conv(2 * wide, 4 * wide, 8, 3, act, weight),
        "conv5": conv(4 * wide, 4 * wide, 8, 3, act, weight),
        "fc6": fc(4 * 4 * 4 * wide, 1024, act, weight),
        "fc7": fc(1024, 1024, act, weight),
        "fc8": fc(1024, 10, act, weight),
    }


def lenet() -> Network:
    return {
        "conv0": conv(1, 32, 32, 5, 2, 2, first=True),
        "conv1": conv(32, 64, 16, 5, 2, 2),
        "fc1": fc(8 * 8 * 64, 512, 2, 2),
        "fc2": fc(512, 10, 2, 2),
    }


def vgg7() -> Network:
    towers: Network = {}
    for tower in "ab":
        towers |= {
            f"conv1_{tower}": conv(3, 128, 32, 3, 2, 2, first=True),
            f"conv2_{tower}": conv(128, 256, 16, 3, 2, 2),
            f"conv3_{tower}": conv(256, 512, 8, 3, 2, 2),
        }
    return towers | {"fc1": fc(4 * 4 * 512, 1024, 2, 2)}


def resnet18() -> Network:
    layers: Network = {"conv1_a": conv(3, 128, 112, 7, 8, 8, first=True, stride=2)}
    inputs, size = 128, 56
    for stage, outputs in enumerate((128, 256, 512, 1024), 2):
        stride = 1 if stage == 2 else 2
        size //= stride
        for block in (1, 2):
            first = inputs if block == 1 else outputs
            step = stride if block == 1 else 1
            layers[f"conv{stage}_{block}_a"] = conv(first, outputs, size, 1, 4, 4, stride=step)
            layers[f"conv{stage}_{block}_b"] = conv(outputs, outputs, size, 3, 4, 4)
        inputs = outputs
    return layers


NETWORKS: dict[str, Network] = {
    "AlexNet": alexnet(),
    "SVHN": quantized_vgg(64, 1, 1, 1),
    "CIFAR10": quantized_vgg(128, 2, 2, 8),
    "LeNet-5": lenet(),
    "VGG-7": vgg7(),
    "RESNET-18": resnet18(),
    "RNN": {"matmul": fc(4096, 4096, 4, 4)},
    "LSTM": {"matmul": fc(3600, 3600, 4, 4)},
}


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def published_layer(row: dict[str, str]) -> tuple[Accelerator, Layer]:
    names = [part for part in row["Layer"].split("/") if part in NETWORKS[row["Network"]]]
    accelerator = replace(
        EYERISS,
        rows=int(row["N"]),
        columns=int(row["M"]),
        weight_buffer=int(row["WBUF Size (bits)"]),
        act_buffer=int(row["IBUF Size (bits)"]),
        out_buffer=int(row["OBUF Size (bits)"]),
        bandwidth=int(row["Bandwidth (bits/cycle)"]),
    )
    return accelerator, NETWORKS[row["Network"]][names[0]]


def moved_bits(found: Cost) -> list[int]:
    """Return what the authors' table lists of a layer, in its order."""
    reads, writes = found.reads, found.writes
    return [
        found.stalls,
        *(part[name] for name in ("weight", "out", "act", "dram") for part in (reads, writes)),
    ]


COLUMNS = [
    "Memory wait cycles",
    *(f"{name} {verb}" for name in ("WBUF", "OBUF", "IBUF", "DRAM") for verb in ("Read", "Write")),
]


def compare_sweep(path: Path) -> None:
    rows = table(path)
    cycles = bits = 0
    for row in rows:
        accelerator, layer = published_layer(row)
        found = cost(layer, accelerator)
        equal = found.cycles == int(row["Cycles"])
        cycles += equal
        bits += moved_bits(found) == [int(row[name]) for name in COLUMNS]
        if not equal:
            print(f"{row['Network']} {row['Layer']}: {found.cycles}, published {row['Cycles']}")
    print(f"the authors' sweep: {len(rows)} layers, cycles equal in {cycles}, the rest in {bits}")


def eyeriss(path: Path) -> dict[str, tuple[float, float]]:
    """Milliseconds and nanojoules of a batch on Eyeriss with 16 bits, by network.

    The column `time(ms)` holds cycles. Energy is in units of a 16-bit product, 3.2 pJ; DRAM's is
    scaled by 0.15 to 45 nm, as the authors do.
    """
    found: dict[str, tuple[float, float]] = {}
    for row in table(path):
        time, energy = found.get(row["Benchmark"], (0.0, 0.0))
        parts = sum(float(row[name]) for name in ("ALU", "Buffer", "Array", "RF"))
        parts += 0.15 * float(row["DRAM"])
        found[row["Benchmark"]] = (time + float(row["time(ms)"]) / 500e3, energy + parts * 3.2e-3)
    return found


def geomean(values: list[float]) -> float:
    return exp(mean(log(value) for value in values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path)
    sources = parser.parse_args().sources
    others = eyeriss(sources / "results/eyeriss_results.csv") if sources else {}
    if sources:
        compare_sweep(sources / "results/bitfusion-eyeriss-sim-sweep.csv")
    faster: list[float] = []
    thriftier: list[float] = []
    print(
        f"{'network':10} {'ms':>9} {'mJ':>9} {'Eyeriss':>9} {'mJ':>9} {'faster':>7} {'energy':>7}"
    )
    for name, network in NETWORKS.items():
        costs = [cost(layer, EYERISS) for layer in network.values()]
        time = sum(found.cycles for found in costs) / EYERISS.frequency * 1e3
        energy = sum(found.energy for found in costs)
        line = f"{name:10} {time:9.3f} {energy / 1e6:9.3f}"
        if name in others:
            other_time, other_energy = others[name]
            faster.append(other_time / time)
            thriftier.append(other_energy / energy)
            line += f" {other_time:9.3f} {other_energy / 1e6:9.3f}"
            line += f" {faster[-1]:7.2f} {thriftier[-1]:7.2f}"
        print(line)
    if faster:
        means = f"{geomean(faster):.3f} times as fast, {geomean(thriftier):.3f} times less energy"
        print(f"geometric means: {means}")


if __name__ == "__main__":
    main()
