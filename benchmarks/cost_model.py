"""How good the cost model is on this machine: `python benchmarks/cost_model.py`.

Calibrates, as `fewbit tune --calibrate` does, predicts calls that were not calibrated on, of all
widths and larger ones too, and prints the errors of each family and the calls that are furthest
off. Nothing is stored. `--default` tests the estimates of a machine that is not calibrated.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

from fewbit.cost.cpu import Calibration, KernelCall
from fewbit.cost.cpu.calibrate import FULL, QUICK, calibrate
from fewbit.cost.cpu.fit import accuracy
from fewbit.cost.cpu.kernel_call import ImageSizes, MatrixSizes
from fewbit.cost.cpu.measure import Bench
from fewbit.cost.cpu.samples import Samples
from fewbit.kernels import Conv2d, Depthwise, IntegerConv2d, IntegerDepthwise, IntegerMatmul, Isa

TESTED = 300
ROUNDS = 10


def known_layers(isa: Isa) -> list[KernelCall]:
    """Return layers of networks, and matmuls at every width."""
    images = [(56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (7, 512, 512, 3)]
    images += [(32, 16, 16, 3), (14, 96, 576, 1), (7, 960, 160, 1), (112, 3, 32, 3)]
    made = [
        KernelCall(kernel, ImageSizes.square(*image))
        for image in images
        for kernel in (IntegerConv2d(isa, "f32"), IntegerConv2d(isa, "f32", 4), Conv2d(isa))
    ]
    for size, c in ((112, 32), (56, 144), (14, 576), (7, 960)):
        sizes = ImageSizes.square(size, c, c, 3, depthwise=True)
        made += [KernelCall(kernel, sizes) for kernel in (IntegerDepthwise(isa), Depthwise(isa))]
    sizes = [(1, 4096, 4096), (1, 1000, 512), (128, 768, 768), (16, 1024, 1024)]
    made += [
        KernelCall(IntegerMatmul(isa, "f32", bits), MatrixSizes(*size))
        for size in sizes
        for bits in range(1, 9)
    ]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--default", action="store_true")
    parser.add_argument("--worst", type=int, default=15)
    options = parser.parse_args()
    isa = Isa.host()
    model = (
        Calibration.default(isa)
        if options.default
        else calibrate(isa, QUICK if options.quick else FULL)
    )
    print(f"held out by the calibration: {model.accuracy}")
    networks = known_layers(isa)
    calls = [*Samples(isa, 1234).draw(TESTED), *networks]
    bench = Bench(isa, 160 << 20)
    timers = [bench.timer(call) for call in calls]
    times = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, timer in enumerate(timers):
            times[i] = min(times[i], timer.seconds(), timer.seconds())
    predicted = [model.seconds(call) for call in calls]
    families: dict[str, list[int]] = defaultdict(list)
    for i, call in enumerate(calls):
        families["layers of networks" if i >= TESTED else call.kernel.symbol[7:]].append(i)
    families["all"] = list(range(len(calls)))
    for name, members in sorted(families.items()):
        print(f"{name:<24}", accuracy([predicted[i] for i in members], [times[i] for i in members]))
    worst = sorted(range(len(calls)), key=lambda i: -abs(predicted[i] / times[i] - 1))
    for i in worst[: options.worst]:
        print(f"{calls[i]!s:<56} {times[i] * 1e6:>9.2f} us, {predicted[i] / times[i] - 1:+.0%}")


if __name__ == "__main__":
    main()
