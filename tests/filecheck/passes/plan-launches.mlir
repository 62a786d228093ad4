// A program on memory becomes launches of kernels and of loops, which are written as CUDA C++.
// RUN: fewbit-opt %s -t cuda:sm_80 --split-input-file --verify-diagnostics \
// RUN:   -p call-layers,rename-entry,find-output-shapes,bind-memory \
// RUN:   -p to-upstream,empty-tensor-to-alloc-tensor \
// RUN:   -p 'one-shot-bufferize{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}' \
// RUN:   -p canonicalize,place-outputs,copies-to-linalg,func.func(linalg-generalize-named-ops),plan-memory,plan-launches | filecheck %s

#id = affine_map<(i) -> (i)>

// CHECK:      extern "C" __global__ void loops_000(const float* __restrict__ p0, float* __restrict__ p1) {
// CHECK-NEXT:   WAIT;
// CHECK-NEXT:   if (THREAD >= 4ull) return;
// CHECK:        const float v0 = p0[(d0)];
// CHECK-NEXT:   const float v1 = (float)(v0 + v0);
// CHECK-NEXT:   p1[(d0)] = v1;
// CHECK-NOT:  loops_001
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// A number of an input fills the result.
// CHECK: extern "C" __global__ void loops_000(const float* __restrict__ p0, float* __restrict__ p1) {
// CHECK-NEXT:   WAIT;
// CHECK-NEXT:   if (THREAD >= 5ull) return;
func.func @main(%k: tensor<f32>) -> tensor<5xf32> {
  %n = tensor.extract %k[] : tensor<f32>
  %e = tensor.empty() : tensor<5xf32>
  %y = linalg.fill ins(%n : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

// Refused: all launches are known before the program runs.
// expected-error @unknown {{depends on what the inputs contain}}
func.func @main(%x: tensor<4xf32>, %n: tensor<1xindex>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %i = tensor.extract %n[%zero] : tensor<1xindex>
  %k = arith.constant 1.5 : f32
  %y = scf.for %j = %zero to %i step %one iter_args(%old = %x) -> (tensor<4xf32>) {
    %new = linalg.fill ins(%k : f32) outs(%old : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %new : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
