"""Attention with Hopper's warpgroup matmuls, in CUDA C++."""

from __future__ import annotations

from itertools import product

from fewbit.kernels.cuda.arch import Arch
from fewbit.kernels.cuda.attention import Attention
from fewbit.kernels.cuda.convolution import element
from fewbit.kernels.cuda.family import Config, Family, ceil_div
from fewbit.kernels.cuda.nvrtc import compile_source, source
from fewbit.kernels.cuda.plan import Launch, Plan, Pointer, Scalar, TensorMap
from fewbit.kernels.cuda.warpgroup import wgmma, wgmma_from_registers


def _refuse(problem: Attention, arch: Arch) -> str | None:
    if not arch.has_warpgroups:
        return f"{arch.name} has no warpgroup matmuls"
    if problem.kv_dtype != problem.dtype:
        return "its keys have another type than its queries"
    if problem.size % 8:
        return "its heads are not a multiple of 16 bytes"
    if any(step % 8 for steps in problem.strides for step in steps):
        return "its rows do not lie at multiples of 16 bytes"
    return None


def attention_source(problem: Attention, config: Config) -> str:
    padded = ceil_div(problem.size, 64) * 64
    dtype = problem.dtype
    return "\n".join(
        [
            source(
                "prelude.cu", "hopper.cu", **element(dtype), INFINITY="__int_as_float(0x7f800000)"
            ),
            wgmma("wgmma_keys", dtype, config["bn"]),
            wgmma_from_registers("wgmma_values", dtype, padded, transposed=True),
            source(
                "attention_wgmma.cu",
                D=problem.size,
                BATCH=problem.batch,
                HEADS=problem.heads,
                KV_HEADS=problem.kv_heads,
                SQ=problem.queries,
                SK=problem.keys,
                CAUSAL=int(problem.causal),
                RAGGED=int(problem.ragged),
                Y_BATCH=problem.strides_of("y")[0],
                Y_HEAD=problem.strides_of("y")[1],
                Y_ROW=problem.strides_of("y")[2],
                BN=config["bn"],
                CONSUMERS=config["consumers"],
                STAGES=config["stages"],
                PINGPONG=config["pingpong"],
                BLOCKS=config["blocks"],
                Q_STAGES=1 + config["stay"],
            ),
        ]
    )


def shared_bytes(problem: Attention, config: Config) -> int:
    padded = ceil_div(problem.size, 64) * 64
    rows = 64 * config["consumers"]
    tile = config["bn"] * padded * 2
    queries = (1 + config["stay"]) * rows * padded * 2
    return queries + 2 * config["stages"] * tile + rows * (padded * 2 + 16) + 1024


def _build(problem: Attention, config: Config, arch: Arch) -> Plan:
    image = compile_source(attention_source(problem, config), arch).image
    rows = 64 * config["consumers"]
    items = ceil_div(problem.queries, rows) * problem.batch * problem.heads
    staying = arch.multiprocessors * config["blocks"]
    launch = Launch(
        0,
        "attention_wgmma",
        (min(items, staying) if config["stay"] else items, 1, 1),
        config["consumers"] * 128 + (128 if config["blocks"] == 1 else 32),
        (
            _map(problem, "q", problem.queries, problem.heads, rows),
            _map(problem, "k", problem.keys, problem.kv_heads, config["bn"]),
            _map(problem, "v", problem.keys, problem.kv_heads, config["bn"]),
            Pointer("lengths"),
            Pointer("y"),
            Scalar("f32", problem.scale),
        ),
        shared_bytes(problem, config),
    )
    return Plan("attention_wgmma", arch.code, problem.buffers(), (launch,), (image,))


def _map(problem: Attention, name: str, length: int, heads: int, rows: int) -> TensorMap:
    batch, head, row = (step * 2 for step in problem.strides_of(name))
    return TensorMap(
        name,
        problem.dtype,
        (problem.size, length, heads, problem.batch),
        (row, head, batch),
        (64, rows, 1, 1),
    )


def _configs(problem: Attention, arch: Arch) -> list[Config]:
    wide = ceil_div(problem.size, 64)
    configs: list[Config] = []
    for consumers, blocks in ((2, 1), (3, 1), (1, 2), (1, 3), (1, 1), (2, 2)):
        most = 240 if blocks == 1 and consumers < 3 else 160
        if blocks > 1:
            most = 65536 // (consumers * 128 + 32) // blocks // 8 * 8
        for bn in (128, 64, 80, 96, 112, 144, 160, 176, 192, 208):
            if bn * 3 // 4 + wide * 32 + 16 > most or bn > max(64, ceil_div(problem.keys, 16) * 16):
                continue
            for stages, pingpong, stay in product((2, 1), (1, 0), (0, 1)):
                if (pingpong and consumers != 2) or (stages == 1 and problem.keys > bn):
                    continue
                config = {
                    "bn": bn,
                    "consumers": consumers,
                    "stages": stages,
                    "pingpong": pingpong,
                    "blocks": blocks,
                    "stay": stay,
                }
                if arch.fits(shared_bytes(problem, config), blocks):
                    configs.append(config)
    return configs


ATTENTION_WGMMA = Family(
    "wgmma", "Hopper's warpgroup matmuls, fed by the copy engine", _refuse, _configs, _build
)
