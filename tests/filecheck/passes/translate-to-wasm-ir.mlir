// A module in the llvm dialect becomes LLVM IR of a WebAssembly module.
// RUN: fewbit-opt %s -t wasm:simd \
// RUN:   -p call-wasm-kernels,rename-entry,bind-memory,to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p canonicalize,place-outputs,outline-loops,plan-memory \
// RUN:   -p func.func(convert-linalg-to-affine-loops),lower-affine,convert-scf-to-cf \
// RUN:   -p 'convert-arith-to-llvm{index-bitwidth=32},finalize-memref-to-llvm{index-bitwidth=32}' \
// RUN:   -p 'convert-func-to-llvm{index-bitwidth=32},convert-cf-to-llvm{index-bitwidth=32}' \
// RUN:   -p reconcile-unrealized-casts,translate-to-wasm-ir | filecheck %s
// RUN: not fewbit-opt %s -p translate-to-wasm-ir 2>&1 | filecheck %s --check-prefix=UNKNOWN

// Refused: without a target nothing is known of the engine.
// UNKNOWN: a pass needs to know

// CHECK: target triple = "wasm32-unknown-unknown"

// Left alone: the entry stays as MLIR translated it.
// CHECK-LABEL: define internal void @program.entry(
// CHECK:         fadd float
// CHECK-LABEL: define void @run()
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
