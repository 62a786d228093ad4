// Layers on integers become calls of kernels; with vectors, of those that have channels enough.
// RUN: fewbit-opt %s -p call-wasm-kernels -t wasm:simd --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p call-wasm-kernels -t wasm --split-input-file | filecheck %s --check-prefix=PLAIN

// Requantized in integers: bytes are stored, and no accumulators.
// CHECK: mico.constant @w.pairs1
// CHECK-LABEL: func.func @integers
// CHECK:         %[[Q:.*]] = memref.alloc() {{.*}} : memref<8x4xi8>
// CHECK:         func.call @kernel.000_kernel_matmul(%{{.*}}, %[[Q]],
// PLAIN: mico.constant @w.plain2
mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<4x8x!mico.int<4>> = dense<1> scale @w.scale
func.func @integers(%u: tensor<8x8x!mico.int<8>>) -> tensor<8x4x!mico.int<8>> {
  %w = mico.get_constant @w : tensor<4x8x!mico.int<4>>
  %m = arith.constant 1431655808 : i32
  %s = arith.constant 38 : i32
  %y, %q = kernel.matmul(%u, %w) multiplier(%m) shift(%s) : (tensor<8x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>, i32, i32) -> (tensor<8x4xi32>, tensor<8x4x!mico.int<8>>)
  func.return %q : tensor<8x4x!mico.int<8>>
}

// -----

// Rows get their scales from a kernel, where there are vectors.
// CHECK-LABEL: func.func @rows
// CHECK:         func.call @kernel.000_quantize_kernel_quantize_rows(
// PLAIN-LABEL: func.func @rows
// PLAIN-NEXT:    kernel.quantize_rows(%x)
func.func @rows(%x: tensor<3x8xf32>) -> (tensor<3x8x!mico.int<8>>, tensor<3xf32>) {
  %q, %s = kernel.quantize_rows(%x) {bits = 8} : tensor<3x8xf32> -> (tensor<3x8x!mico.int<8>>, tensor<3xf32>)
  func.return %q, %s : tensor<3x8x!mico.int<8>>, tensor<3xf32>
}

// -----

// Left alone: floats, rows that are shorter than a vector, and those of few bits.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    kernel.matmul(%x, %v)
// CHECK-NEXT:    kernel.quantize_rows(%x)
// CHECK-NEXT:    kernel.quantize_rows(%y)
// CHECK-NOT:     func.call
func.func @kept(%x: tensor<3x3xf32>, %v: tensor<2x3xf32>, %y: tensor<3x8xf32>) -> (tensor<3x2xf32>, tensor<3x3x!mico.int<8>>, tensor<3x8x!mico.int<2>>) {
  %a = kernel.matmul(%x, %v) : (tensor<3x3xf32>, tensor<2x3xf32>) -> tensor<3x2xf32>
  %q, %s = kernel.quantize_rows(%x) {bits = 8} : tensor<3x3xf32> -> (tensor<3x3x!mico.int<8>>, tensor<3xf32>)
  %r, %t = kernel.quantize_rows(%y) {bits = 2} : tensor<3x8xf32> -> (tensor<3x8x!mico.int<2>>, tensor<3xf32>)
  func.return %a, %q, %r : tensor<3x2xf32>, tensor<3x3x!mico.int<8>>, tensor<3x8x!mico.int<2>>
}
