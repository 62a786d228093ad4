// RUN: fewbit-opt %s -p fuse-requantize | filecheck %s

// The accumulators are read by nothing else: the matmul gives bytes, and relu is their bound.
// CHECK-LABEL: func.func @layer
// CHECK:         %[[M:.*]] = arith.constant
// CHECK:         %{{.*}}, %[[Q:.*]] = kernel.matmul(%x, %w) bias(%b) multiplier(%[[M]]) {minimum = 0.000000e+00 : f64} : ({{.*}}) -> (tensor<?x4xi32>, tensor<?x4x!mico.int<8>>)
// CHECK-NEXT:    func.return %[[Q]]
func.func @layer(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %b: tensor<4xi32>) -> tensor<?x4x!mico.int<8>> {
  %0 = kernel.matmul(%x, %w) bias(%b) : (tensor<?x8xi8>, tensor<4x8xi8>, tensor<4xi32>) -> tensor<?x4xi32>
  %m = arith.constant 0.25 : f32
  %1 = mico.requantize(%0, %m) : (tensor<?x4xi32>, f32) -> tensor<?x4x!mico.int<8>>
  %2 = mico.relu(%1) : (tensor<?x4x!mico.int<8>>) -> tensor<?x4x!mico.int<8>>
  func.return %2 : tensor<?x4x!mico.int<8>>
}

// Others may read the sums, and with other multipliers; a relu of one of two readers stays.
// CHECK-LABEL: func.func @two_readers
// CHECK:         %[[Y:.*]], %[[Q:.*]] = kernel.matmul(%x, %w) multiplier(%{{.*}}) : ({{.*}})
// CHECK:         mico.requantize(%[[Y]]
// CHECK-NOT:     mico.requantize
// CHECK:         mico.relu(%[[Q]])
// CHECK:         func.return
func.func @two_readers(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>) -> (tensor<?x4x!mico.int<8>>, tensor<?x4x!mico.int<8>>, tensor<?x4x!mico.int<4>>) {
  %0 = kernel.matmul(%x, %w) : (tensor<?x8xi8>, tensor<4x8xi8>) -> tensor<?x4xi32>
  %a = arith.constant 0.25 : f32
  %b = arith.constant 0.5 : f32
  %1 = mico.requantize(%0, %a) : (tensor<?x4xi32>, f32) -> tensor<?x4x!mico.int<8>>
  %2 = mico.requantize(%0, %b) : (tensor<?x4xi32>, f32) -> tensor<?x4x!mico.int<4>>
  %3 = mico.relu(%1) : (tensor<?x4x!mico.int<8>>) -> tensor<?x4x!mico.int<8>>
  func.return %1, %3, %2 : tensor<?x4x!mico.int<8>>, tensor<?x4x!mico.int<8>>, tensor<?x4x!mico.int<4>>
}

// Behind pooling, a relu is still a bound; a reshape that keeps channels moves behind.
// CHECK-LABEL: func.func @pooled
// CHECK:         kernel.conv2d(%x, %w) multiplier(%{{.*}}) {minimum = 0.000000e+00 : f64
// CHECK-NEXT:    mico.reshape
// CHECK-NEXT:    kernel.pool2d
// CHECK-NEXT:    func.return
func.func @pooled(%x: tensor<1x1x64x2xi8>, %w: tensor<4x2x1x1xi8>) -> tensor<1x4x4x4x!mico.int<8>> {
  %0 = kernel.conv2d(%x, %w) : (tensor<1x1x64x2xi8>, tensor<4x2x1x1xi8>) -> tensor<1x1x64x4xi32>
  %1 = mico.reshape(%0) {shape = [1, 8, 8, 4]} : (tensor<1x1x64x4xi32>) -> tensor<1x8x8x4xi32>
  %m = arith.constant 0.25 : f32
  %2 = mico.requantize(%1, %m) {axis = 3} : (tensor<1x8x8x4xi32>, f32) -> tensor<1x8x8x4x!mico.int<8>>
  %3 = kernel.pool2d(%2) {kind = "max", kernel_size = [2, 2]} : (tensor<1x8x8x4x!mico.int<8>>) -> tensor<1x4x4x4x!mico.int<8>>
  %4 = mico.relu(%3) : (tensor<1x4x4x4x!mico.int<8>>) -> tensor<1x4x4x4x!mico.int<8>>
  func.return %4 : tensor<1x4x4x4x!mico.int<8>>
}

// Left alone: something is added to the sums before they are requantized.
// CHECK-LABEL: func.func @added
// CHECK:         %[[Y:.*]] = kernel.matmul(%x, %w) : (
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[Y]], %r
// CHECK:         mico.requantize(%[[SUM]],
func.func @added(%x: tensor<?x8xi8>, %w: tensor<4x8xi8>, %r: tensor<?x4xi32>) -> tensor<?x4x!mico.int<8>> {
  %0 = kernel.matmul(%x, %w) : (tensor<?x8xi8>, tensor<4x8xi8>) -> tensor<?x4xi32>
  %1 = arith.addi %0, %r : tensor<?x4xi32>
  %m = arith.constant 0.25 : f32
  %2 = mico.requantize(%1, %m) : (tensor<?x4xi32>, f32) -> tensor<?x4x!mico.int<8>>
  func.return %2 : tensor<?x4x!mico.int<8>>
}
