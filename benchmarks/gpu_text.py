# pyright: basic
"""A language model's steps on a GPU: its tokens, microseconds a step, and where they go.

    fewbit compile model.gguf -r w4a8g32-f16 -t cuda --precision f16 -o build/model
    python benchmarks/gpu_text.py steps build/model --expected tokens.json
    python benchmarks/gpu_text.py torch --mode layers

`steps` needs fewbit, the artifact and a GPU's driver; with a PyTorch that sees the GPU, kernels are
timed one by one as well. `--expected` has, by prompts, the tokens that another target decoded.
`torch` is a module of SmolLM2's shape in f16, with random weights and a static cache, compiled and
replayed as one CUDA graph: layer by layer (`layers`) or whole (`whole`), which takes a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from ctypes import byref, c_float, c_void_p
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

POSITIONS = (32, 512, 2000)
REPEATS = 200


def run_steps(folder: str, expected: str | None) -> None:
    import numpy as np

    import fewbit

    start = time.perf_counter()
    art = fewbit.load(folder)
    art.runner  # noqa: B018
    print(
        f"loaded in {time.perf_counter() - start:.1f} s, {len(art.runner.plan.launches)} launches"
    )
    for prompt, known in json.loads(Path(expected).read_text()).items() if expected else ():
        generation = art.generate(known["prompt"], tokens=len(known["tokens"]))
        text = "".join(generation)
        same = sum(a == b for a, b in zip(generation.tokens, known["tokens"], strict=False))
        print(f"{same} of {len(known['tokens'])} tokens are the same: {prompt!r} {text!r}")
        print("  calls:", f"{median(generation.step_seconds[1:]) * 1e6:.0f} us with Python")
    session = art.session()
    settings = art.text_model.settings
    rng = np.random.default_rng(0)
    for position in POSITIONS:
        if position >= settings.context:
            continue
        token = rng.integers(0, settings.vocabulary, (1, 1))
        session(token, np.array([position]))
        ((_, call),) = session._calls.values()
        print(f"position {position}: {time_graph(art.runner, call):.1f} us a step")
    profile_kernels(art.runner, call)


def time_graph(program, call) -> float:
    """Return the median microseconds of a replay, by events of the driver."""
    gpu, stream = program.device, c_void_p(program.stream)
    events = [c_void_p() for _ in range(2 * REPEATS)]
    for event in events:
        gpu.call("cuEventCreate", byref(event), 0)
    for _ in range(20):
        call.launch_graph(program.stream)
    for first, last in zip(events[::2], events[1::2], strict=True):
        gpu.call("cuEventRecord", first, stream)
        call.launch_graph(program.stream)
        gpu.call("cuEventRecord", last, stream)
    gpu.call("cuStreamSynchronize", stream)
    times = []
    for first, last in zip(events[::2], events[1::2], strict=True):
        elapsed = c_float()
        gpu.call("cuEventElapsedTime", byref(elapsed), first, last)
        times.append(elapsed.value * 1e3)
    return median(times)


def profile_kernels(program, call) -> None:
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return
    torch.zeros(1, device="cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(3):
            call.launch_graph(program.stream)
        program.device.synchronize()
    spent = defaultdict(list)
    for event in seen.events() or ():
        spent[event.name].append(event.device_time)
    total = sum(map(sum, spent.values())) / 3
    print(f"kernels alone: {total:.0f} us")
    for name, times in sorted(spent.items(), key=lambda item: -sum(item[1]))[:24]:
        print(
            f"  {sum(times) / 3:8.1f} us  {len(times) // 3:4} x {median(times):6.2f}  {name[:70]}"
        )


WIDTH, HIDDEN, HEADS, KEYS, HEAD, DEPTH, WORDS = 576, 1536, 9, 3, 64, 30, 49152


def run_torch(mode: str, context: int) -> None:
    import torch
    from torch.nn import functional as F  # noqa: N812

    torch.manual_seed(0)
    torch.set_grad_enabled(False)

    def weight(*shape):
        return (torch.randn(shape, device="cuda") / shape[-1] ** 0.5).half()

    cache = [weight(2, 1, KEYS, context, HEAD) for _ in range(DEPTH)]
    layers = [
        (
            weight(HEADS * HEAD + 2 * KEYS * HEAD, WIDTH),
            weight(WIDTH, HEADS * HEAD),
            weight(2 * HIDDEN, WIDTH),
            weight(WIDTH, HIDDEN),
            weight(WIDTH),
            weight(WIDTH),
        )
        for _ in range(DEPTH)
    ]
    embedding = weight(WORDS, WIDTH)
    angles = torch.outer(
        torch.arange(context).float(), 1e5 ** (-torch.arange(0, HEAD, 2).float() / HEAD)
    ).cuda()
    cosines, sines = (torch.cat([f(angles)] * 2, -1).half() for f in (torch.cos, torch.sin))

    def norm(x, scale):
        return F.rms_norm(x, (WIDTH,), scale, 1e-5)

    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def layer(x, weights, kept, position, cos, sin, mask):
        qkv, out, gate_up, down, first, second = weights
        q, k, v = F.linear(norm(x, first), qkv).split([HEADS * HEAD, KEYS * HEAD, KEYS * HEAD], -1)
        q = turn(q.view(1, HEADS, 1, HEAD), cos, sin)
        k = turn(k.view(1, KEYS, 1, HEAD), cos, sin)
        kept[0].index_copy_(2, position, k)
        kept[1].index_copy_(2, position, v.view(1, KEYS, 1, HEAD))
        y = F.scaled_dot_product_attention(q, kept[0], kept[1], attn_mask=mask, enable_gqa=True)
        x = x + F.linear(y.reshape(1, 1, -1), out)
        gate, up = F.linear(norm(x, second), gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, down)

    how = {"mode": "max-autotune-no-cudagraphs", "fullgraph": True}
    each = torch.compile(layer, **how) if mode == "layers" else layer

    def step(token, position):
        x = embedding[token]
        mask = (torch.arange(context, device="cuda") <= position).view(1, 1, 1, -1)
        cos, sin = cosines[position], sines[position]
        for weights, kept in zip(layers, cache, strict=True):
            x = each(x, weights, kept, position, cos, sin, mask)
        return F.linear(norm(x, layers[0][4]), embedding).float()

    token, position = (torch.zeros(n, dtype=torch.int64, device="cuda") for n in ((1, 1), (1,)))
    start = time.perf_counter()
    compiled = torch.compile(step, **how) if mode == "whole" else step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            compiled(token, position)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compiled(token, position)
    run = graph.replay
    torch.cuda.synchronize()
    print(f"PyTorch {torch.__version__}, {mode}, compiled in {time.perf_counter() - start:.0f} s")
    for place in POSITIONS:
        position.fill_(min(place, context - 1))
        times = []
        for _ in range(20):
            run()
        for _ in range(REPEATS):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            run()
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last) * 1e3)
        print(f"position {place}, context {context}: {median(times):.1f} us a step")
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    kernels = [event.device_time for event in seen.events() or ()]
    print(f"{len(kernels)} kernels, {sum(kernels):.0f} us alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    steps = commands.add_parser("steps")
    steps.add_argument("folder")
    steps.add_argument("--expected")
    torch = commands.add_parser("torch")
    torch.add_argument("--mode", choices=("layers", "whole"), default="layers")
    torch.add_argument("--context", type=int, default=2048)
    given = parser.parse_args()
    if given.command == "steps":
        run_steps(given.folder, given.expected)
    else:
        run_torch(given.mode, given.context)


if __name__ == "__main__":
    main()
