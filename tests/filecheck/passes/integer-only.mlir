// Between layers with static scales there are integers alone: sums are requantized, not scaled.
// RUN: fewbit-opt %s -p integer-only --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p 'integer-only{fixed-point=true}' --split-input-file | filecheck %s --check-prefix=FIXED
// RUN: fewbit-opt %s -p 'integer-only{strict=true}' --split-input-file --verify-diagnostics

mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<2x2x!mico.int<4>> = dense<[[1, 2], [3, 4]]> scale @w.scale

// CHECK-LABEL: func.func @static
// CHECK:         %[[U:.*]] = mico.quantize(%x, %{{.*}}) : (tensor<?x2xf32>, f32) -> tensor<?x2x!mico.int<8>>
// CHECK:         %[[SUMS:.*]] = mico.bitlinear(%[[U]], %{{.*}}) {{.*}} -> tensor<?x2xi32>
// CHECK-NEXT:    %[[FACTOR:.*]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:    %[[Q:.*]] = mico.requantize(%[[SUMS]], %[[FACTOR]])
// CHECK-NEXT:    %[[R:.*]] = mico.relu(%[[Q]]) : (tensor<?x2x!mico.int<8>>)
// CHECK:         mico.bitlinear(%[[R]], {{.*}} -> tensor<?x2xf32>

// The same factor as 2^30 / 2^31.
// FIXED-LABEL: func.func @static
// FIXED:         %[[MULTIPLIER:.*]] = arith.constant 1073741824 : i32
// FIXED-NEXT:    %[[SHIFT:.*]] = arith.constant 31 : i32
// FIXED-NEXT:    mico.requantize(%{{.*}}, %[[MULTIPLIER]]) shift(%[[SHIFT]])
func.func @static(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %step = arith.constant 0.25 : f32
  %0 = mico.bitlinear(%x, @w) act_scale(%step) {act_bits = 8} : (tensor<?x2xf32>, f32) -> tensor<?x2xf32>
  %1 = mico.relu(%0) : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %2 = mico.bitlinear(%1, @w) act_scale(%step) {act_bits = 8} : (tensor<?x2xf32>, f32) -> tensor<?x2xf32>
  func.return %2 : tensor<?x2xf32>
}

// -----

mico.constant @w.scale : tensor<f32> = dense<0.5>
mico.constant @w : tensor<2x2x!mico.int<4>> = dense<[[1, 2], [3, 4]]> scale @w.scale

// Left alone, and refused where it is strict: scales that are found at run time are of floats.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT:     mico.requantize
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x, {{.*}} -> tensor<?x2xf32>
// CHECK:         mico.bitlinear(%[[Y]], {{.*}} -> tensor<?x2xf32>
// CHECK-NOT:     mico.requantize
func.func @dynamic(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @below {{cannot be computed on integers alone: its activations are scaled at run time}}
  %0 = mico.bitlinear(%x, @w) {act_bits = 8} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %1 = mico.bitlinear(%0, @w) {act_bits = 8} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  func.return %1 : tensor<?x2xf32>
}
