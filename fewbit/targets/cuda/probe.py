"""Whether there is a GPU, and whether a layer runs on it."""

from __future__ import annotations

import ctypes
from dataclasses import replace

from fewbit.targets.probe import Found, probe_layer


def probe_cuda() -> Found:
    install = "an NVIDIA GPU with its driver, and fewbit[cuda]"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Found(False, "NVIDIA's driver library is missing", install)
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return Found(False, "NVIDIA's driver finds no GPU", install)
    name = ctypes.create_string_buffer(100)
    driver.cuDeviceGetName(name, len(name), 0)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    driver.cuDeviceComputeCapability(ctypes.byref(major), ctypes.byref(minor), 0)
    ran = probe_layer(f"cuda:sm_{major.value}{minor.value}", install)
    return replace(ran, why=f"{ran.why}, on {name.value.decode()}") if ran.works else ran
