// RUN: fewbit-opt %s -p fuse-quantize | filecheck %s

// The floats are read by nothing else: the contraction gives bytes.
// CHECK-LABEL: func.func @layer
// CHECK:         %{{.*}}, %[[Q:.*]] = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) {minimum = 0.000000e+00 : f64, step = 2.500000e-01 : f64} : ({{.*}}) -> (tensor<?x4xf32>, tensor<?x4x!mico.int<8>>)
// CHECK-NEXT:    func.return %[[Q]]
func.func @layer(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %s: f32, %t: tensor<4xf32>) -> tensor<?x4x!mico.int<8>> {
  %0 = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) {minimum = 0.000000e+00 : f64} : (tensor<?x8xi8>, tensor<4x8xi8>, f32, tensor<4xf32>) -> tensor<?x4xf32>
  %step = arith.constant 0.25 : f32
  %1 = mico.quantize(%0, %step) : (tensor<?x4xf32>, f32) -> tensor<?x4x!mico.int<8>>
  func.return %1 : tensor<?x4x!mico.int<8>>
}

// One step is the contraction's, another reads the floats.
// CHECK-LABEL: func.func @two_steps
// CHECK:         %[[Y:.*]], %{{.*}} = kernel.matmul
// CHECK:         mico.quantize(%[[Y]]
// CHECK-NOT:     mico.quantize
// CHECK:         func.return
func.func @two_steps(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %s: f32, %t: tensor<4xf32>) -> (tensor<?x4x!mico.int<8>>, tensor<?x4x!mico.int<8>>) {
  %0 = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) : (tensor<?x8xi8>, tensor<4x8xi8>, f32, tensor<4xf32>) -> tensor<?x4xf32>
  %a = arith.constant 0.25 : f32
  %b = arith.constant 0.5 : f32
  %1 = mico.quantize(%0, %a) : (tensor<?x4xf32>, f32) -> tensor<?x4x!mico.int<8>>
  %2 = mico.quantize(%0, %b) : (tensor<?x4xf32>, f32) -> tensor<?x4x!mico.int<8>>
  func.return %1, %2 : tensor<?x4x!mico.int<8>>, tensor<?x4x!mico.int<8>>
}

// Left alone: contractions of floats give floats.
// CHECK-LABEL: func.func @floats
// CHECK:         mico.quantize
func.func @floats(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4x!mico.int<8>> {
  %0 = kernel.matmul(%x, %w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %step = arith.constant 0.25 : f32
  %1 = mico.quantize(%0, %step) : (tensor<?x4xf32>, f32) -> tensor<?x4x!mico.int<8>>
  func.return %1 : tensor<?x4x!mico.int<8>>
}

// An activation between the two is part of the contraction.
// CHECK-LABEL: func.func @activated
// CHECK:         %{{.*}}, %[[Q:.*]] = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) {activation = "gelu", step = 2.500000e-01 : f64}
// CHECK-NEXT:    func.return %[[Q]]
func.func @activated(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %s: f32, %t: tensor<4xf32>) -> tensor<?x4x!mico.int<8>> {
  %step = arith.constant 2.500000e-01 : f32
  %0 = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) {activation = "gelu"} : (tensor<?x8xi8>, tensor<4x8xi8>, f32, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = mico.quantize(%0, %step) : (tensor<?x4xf32>, f32) -> tensor<?x4x!mico.int<8>>
  func.return %1 : tensor<?x4x!mico.int<8>>
}
