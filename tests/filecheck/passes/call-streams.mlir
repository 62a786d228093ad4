// Products of integers call functions that send command streams to the accelerator.
// RUN: fewbit-opt %s -p call-streams -t gemmini --split-input-file | filecheck %s

// The accelerator reads the weight turned, in bytes, and gives sums; scales are the host's.
// CHECK: mico.constant @w.matmul : tensor<8x2xi8>
// CHECK-LABEL: func.func @sums
// CHECK:         %[[SUMS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<3x2xi32>
// CHECK:         func.call @kernel.000_kernel_matmul(%{{.*}}, %{{.*}}, %[[SUMS]],
// CHECK:         linalg.generic
// CHECK:           arith.sitofp
mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<2x8x!mico.int<4>> = dense<1> scale @w.scale
func.func @sums(%u: tensor<3x8x!mico.int<8>>, %s: f32) -> tensor<3x2xf32> {
  %w = mico.get_constant @w : tensor<2x8x!mico.int<4>>
  %t = mico.get_constant @w.scale : tensor<f32>
  %y = kernel.matmul(%u, %w) x_scale(%s) weight_scale(%t) : (tensor<3x8x!mico.int<8>>, tensor<2x8x!mico.int<4>>, f32, tensor<f32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// With one multiplier, it gives the next layer's integers itself.
// CHECK-LABEL: func.func @requantized
// CHECK:         %[[OUT:.*]] = memref.alloc() {alignment = 64 : i64} : memref<3x2xi8>
// CHECK:         func.call @kernel.000_kernel_matmul(%{{.*}}, %{{.*}}, %[[OUT]],
// CHECK-NOT:     linalg.generic
mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<2x8x!mico.int<4>> = dense<1> scale @w.scale
func.func @requantized(%u: tensor<3x8x!mico.int<8>>) -> tensor<3x2x!mico.int<8>> {
  %w = mico.get_constant @w : tensor<2x8x!mico.int<4>>
  %m = arith.constant 0.25 : f32
  %y, %q = kernel.matmul(%u, %w) multiplier(%m) : (tensor<3x8x!mico.int<8>>, tensor<2x8x!mico.int<4>>, f32) -> (tensor<3x2xi32>, tensor<3x2x!mico.int<8>>)
  func.return %q : tensor<3x2x!mico.int<8>>
}

// -----

// Left alone: products of floats are the host's.
// CHECK-LABEL: func.func @floats
// CHECK-NEXT:    kernel.matmul(%x, %w)
// CHECK-NOT:     func.call
func.func @floats(%x: tensor<3x8xf32>, %w: tensor<2x8xf32>) -> tensor<3x2xf32> {
  %y = kernel.matmul(%x, %w) : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}
