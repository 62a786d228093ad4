// A module in the llvm dialect becomes LLVM IR of a library for a microcontroller.
// RUN: fewbit-opt %s -t mcu:cortex-m3 \
// RUN:   -p call-mcu-kernels,rename-entry,bind-memory,to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p canonicalize,place-outputs,outline-loops,plan-memory \
// RUN:   -p func.func(convert-linalg-to-affine-loops),lower-affine,convert-scf-to-cf \
// RUN:   -p 'convert-arith-to-llvm{index-bitwidth=32},finalize-memref-to-llvm{index-bitwidth=32}' \
// RUN:   -p 'convert-func-to-llvm{index-bitwidth=32},convert-cf-to-llvm{index-bitwidth=32}' \
// RUN:   -p reconcile-unrealized-casts,translate-to-mcu-ir | filecheck %s
// RUN: not fewbit-opt %s -p translate-to-mcu-ir 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Refused: without a target nothing is known of the core.
// UNKNOWN: a pass needs to know

// CHECK: target triple = "thumbv7m-none-eabi"

// Left alone: the entry stays as MLIR translated it, but for attributes of size.
// CHECK-LABEL: define internal void @program.entry(
// CHECK:         fadd float
// CHECK-LABEL: define void @model_run(ptr %x, ptr %output0, ptr %arena)
// CHECK:         call void @program.entry(
// CHECK:         ret void

#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
