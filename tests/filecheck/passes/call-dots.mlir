// Products of few-bit integers call functions with dot instructions, which give the bare sums.
// RUN: fewbit-opt %s -p call-dots -t vexii --split-input-file | filecheck %s

// 2 rows of 8 weights are 8 bytes of 4 bits; scales follow as a loop.
// CHECK: mico.constant @w.panels_a8 : tensor<8xi8>
// CHECK-LABEL: func.func @integers
// CHECK:         %[[U:.*]] = builtin.unrealized_conversion_cast %u : tensor<3x8x!mico.int<8>> to tensor<3x8xi8>
// CHECK:         %[[W:.*]] = mico.get_constant @w.panels_a8
// CHECK:         %[[SUMS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<3x2xi32>
// CHECK:         func.call @kernel.000_kernel_matmul(%{{.*}}, %{{.*}}, %[[SUMS]],
// CHECK-NEXT:    %[[TOTAL:.*]] = bufferization.to_tensor %[[SUMS]]
// CHECK:         linalg.generic {{.*}} ins(%[[TOTAL]], %{{.*}}, %{{.*}} : tensor<3x2xi32>, tensor<f32>, tensor<f32>)
// CHECK:           arith.sitofp %{{.*}} : i32 to f32
mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<2x8x!mico.int<4>> = dense<1> scale @w.scale
func.func @integers(%u: tensor<3x8x!mico.int<8>>, %s: f32) -> tensor<3x2xf32> {
  %w = mico.get_constant @w : tensor<2x8x!mico.int<4>>
  %t = mico.get_constant @w.scale : tensor<f32>
  %y = kernel.matmul(%u, %w) x_scale(%s) weight_scale(%t) : (tensor<3x8x!mico.int<8>>, tensor<2x8x!mico.int<4>>, f32, tensor<f32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
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
