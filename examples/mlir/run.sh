#!/usr/bin/env bash
# Compile the examples for this machine's processor and run them.  TARGET=iree-vulkan is a GPU.
set -euo pipefail
cd "$(dirname "$0")"
target=${TARGET:-iree-cpu}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

for name in add matmul conv2d tanh; do
  fewbit compile "$name.mlir" -t "$target" -o "$made/$name" >/dev/null
done

fewbit run "$made/add" --input 10xf32=0,1,2,3,4,5,6,7,8,9 --input 10xf32=90,80,70,60,50,40,30,20,10,0
fewbit run "$made/matmul" --input "2x3xf32=[1 2 3][4 5 6]" --input 3x2xf32=1 --input 2x2xf32
fewbit run "$made/conv2d" --input 1x8x8x3xf32=1 --input 3x3x3x4xf32=0.5
fewbit run "$made/tanh" --input 4xf32=-1,0,0.5,2
