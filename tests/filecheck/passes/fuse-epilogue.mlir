// RUN: fewbit-opt %s -p fuse-epilogue | filecheck %s

// The residual, then the bounds, in one matmul; the other keeps its result for it.
// CHECK-LABEL: func.func @block
// CHECK:         %[[R:.*]] = kernel.matmul(%x, %v) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
// CHECK-NEXT:    %[[Y:.*]] = kernel.matmul(%x, %w) bias(%b) add(%[[R]]) {minimum = 0.000000e+00 : f64, maximum = 6.000000e+00 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @block(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = kernel.matmul(%x, %w) bias(%b) : (tensor<?x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = kernel.matmul(%x, %v) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %2 = mico.add(%0, %1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %3 = mico.relu6(%2) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %3 : tensor<?x8xf32>
}

// Left alone: what something else reads too.
// CHECK-LABEL: func.func @read_twice
// CHECK:         %[[P:.*]] = kernel.matmul(%x, %w) : (
// CHECK-NEXT:    %[[Y:.*]] = mico.relu(%[[P]])
// CHECK-NEXT:    func.return %[[P]], %[[Y]]
func.func @read_twice(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = kernel.matmul(%x, %w) : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %1 = mico.relu(%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// Of integers, behind their scales.
// CHECK-LABEL: func.func @integers
// CHECK:         %[[Y:.*]] = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) add(%r) {minimum = 0.000000e+00 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @integers(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %s: tensor<?xf32>, %t: tensor<4xf32>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul(%x, %w) x_scale(%s) weight_scale(%t) : (tensor<?x8xi8>, tensor<4x8xi8>, tensor<?xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  %1 = mico.add(%0, %r) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = mico.relu(%1) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %2 : tensor<?x4xf32>
}

// An activation stands between what is added and the bounds; a second one stays.
// CHECK-LABEL: func.func @activations
// CHECK:         %[[P:.*]] = kernel.matmul(%x, %w) add(%r) {activation = "gelu_tanh"}
// CHECK-NEXT:    %[[Y:.*]] = mico.silu(%[[P]])
// CHECK-NEXT:    func.return %[[Y]]
func.func @activations(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>, %r: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = kernel.matmul(%x, %w) : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
  %1 = mico.add(%0, %r) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = mico.gelu(%1) {approximate = "tanh"} : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = mico.silu(%2) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %3 : tensor<?x4xf32>
}
