// Layers on integers become calls of kernels that make their outputs of accumulators at once.
// RUN: fewbit-opt %s -p call-mcu-kernels -t mcu:cortex-m4 --split-input-file | filecheck %s

// Requantized in integers: bytes are stored, and no accumulators.
// CHECK: mico.constant @w.dsp1
// CHECK-LABEL: func.func @integers
// CHECK:         %[[Q:.*]] = memref.alloc() {{.*}} : memref<8x4xi8>
// CHECK-NOT:     memref<8x4xi32>
// CHECK:         func.call @kernel.000_kernel_matmul(%{{.*}}, %[[Q]],
// CHECK-NEXT:    %[[T:.*]] = bufferization.to_tensor %[[Q]]
// CHECK:         builtin.unrealized_conversion_cast %[[T]] : tensor<8x4xi8> to tensor<8x4x!mico.int<8>>
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

// Left alone: floats, and weights that a run computes.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    kernel.matmul(%x, %v)
// CHECK-NEXT:    kernel.matmul(%u, %w)
// CHECK-NOT:     func.call
func.func @kept(%x: tensor<3x8xf32>, %v: tensor<2x8xf32>, %u: tensor<3x8x!mico.int<8>>, %w: tensor<2x8x!mico.int<4>>, %s: f32) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %y = kernel.matmul(%x, %v) : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<3x2xf32>
  %z = kernel.matmul(%u, %w) x_scale(%s) weight_scale(%s) : (tensor<3x8x!mico.int<8>>, tensor<2x8x!mico.int<4>>, f32, f32) -> tensor<3x2xf32>
  func.return %y, %z : tensor<3x2xf32>, tensor<3x2xf32>
}
