// RUN: fewbit-opt %s -p select-kernels | filecheck %s

// A float convolution and its bias, between transposes.
// CHECK-LABEL: func.func @float
// CHECK:         %[[X:.*]] = mico.transpose(%x) {permutation = [0, 2, 3, 1]}
// CHECK:         %[[Y:.*]] = kernel.conv2d(%[[X]], %w) bias(%b) {stride = [2, 2], padding = [1, 1, 1, 1], dilation = [1, 1], groups = 1 : i32}
// CHECK-SAME:      -> tensor<?x4x4x8xf32>
// CHECK:         mico.transpose(%[[Y]]) {permutation = [0, 3, 1, 2]}
func.func @float(%x: tensor<?x3x8x8xf32>, %w: tensor<8x3x3x3xf32>, %b: tensor<8xf32>) -> tensor<?x8x4x4xf32> {
  %y = mico.bitconv2d(%x, %w, %b) {stride = [2, 2], padding = [1, 1]} : (tensor<?x3x8x8xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>) -> tensor<?x8x4x4xf32>
  func.return %y : tensor<?x8x4x4xf32>
}

// Integers: quantization is an op for itself, and the scales go to the kernel.
// CHECK-LABEL: func.func @integers
// CHECK:         %[[U:.*]], %[[S:.*]] = kernel.quantize_rows(%x) {bits = 8 : i32, granularity = "row"}
// CHECK-NEXT:    %[[Y:.*]] = kernel.matmul(%[[U]], %w) x_scale(%[[S]]) weight_scale(%s) : (tensor<?x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>, tensor<?xf32>, tensor<4xf32>) -> tensor<?x4xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @integers(%x: tensor<?x8xf32>, %w: tensor<4x8x!mico.int<4>>, %s: tensor<4xf32>) -> tensor<?x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) {act_bits = 8} : (tensor<?x8xf32>, tensor<4x8x!mico.int<4>>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Rows with scales for groups are rows of a tensor with one dimension more.
// CHECK-LABEL: func.func @groups
// CHECK:         %[[X:.*]] = mico.reshape(%x) {shape = [0, 2, 4]} : (tensor<?x8xf32>) -> tensor<?x2x4xf32>
// CHECK-NEXT:    %[[U:.*]], %[[S:.*]] = kernel.quantize_rows(%[[X]]) {bits = 8 : i32, granularity = "row"}
// CHECK-NEXT:    %[[V:.*]] = mico.reshape(%[[U]]) {shape = [0, -1]}
// CHECK-NEXT:    kernel.matmul(%[[V]], %w) x_scale(%[[S]]) weight_scale(%s) : ({{.*}}, tensor<?x2xf32>, tensor<4x2xf32>) -> tensor<?x4xf32>
func.func @groups(%x: tensor<?x8xf32>, %w: tensor<4x8x!mico.int<4>>, %s: tensor<4x2xf32>) -> tensor<?x4xf32> {
  %y = mico.bitlinear(%x, %w) weight_scale(%s) {act_bits = 8, act_group = 4 : i32} : (tensor<?x8xf32>, tensor<4x8x!mico.int<4>>, tensor<4x2xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// Accumulators are sums with a bias in i32.
// CHECK-LABEL: func.func @accumulators
// CHECK:         %[[ACC:.*]] = kernel.matmul(%u, %w) bias(%b) : ({{.*}}) -> tensor<2x4xi32>
// CHECK-NEXT:    func.return %[[ACC]]
func.func @accumulators(%u: tensor<2x8x!mico.int<8>>, %w: tensor<4x8x!mico.int<4>>, %b: tensor<4xi32>) -> tensor<2x4xi32> {
  %y = mico.bitlinear(%u, %w, %b) {act_bits = 8} : (tensor<2x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>, tensor<4xi32>) -> tensor<2x4xi32>
  func.return %y : tensor<2x4xi32>
}

// One dimension is two of which one is 1.
// CHECK-LABEL: func.func @row
// CHECK-DAG:     mico.reshape(%x) {shape = [0, 0, 1, -1]}
// CHECK-DAG:     mico.reshape(%w) {shape = [0, 0, 1, -1]}
// CHECK:         kernel.conv2d
// CHECK-SAME:      stride = [1, 1], padding = [0, 0, 1, 1]
// CHECK:         mico.reshape(%{{.*}}) {shape = [0, 0, -1]} : (tensor<?x4x1x9xf32>) -> tensor<?x4x9xf32>
func.func @row(%x: tensor<?x2x9xf32>, %w: tensor<4x2x3xf32>) -> tensor<?x4x9xf32> {
  %y = mico.bitconv1d(%x, %w) {padding = [1]} : (tensor<?x2x9xf32>, tensor<4x2x3xf32>) -> tensor<?x4x9xf32>
  func.return %y : tensor<?x4x9xf32>
}

// Left alone: what no kernel computes.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    mico.embedding(%i, %t)
// CHECK-NEXT:    mico.softmax
func.func @kept(%i: tensor<2xi64>, %t: tensor<10x4xf32>) -> tensor<2x4xf32> {
  %0 = mico.embedding(%i, %t) : (tensor<2xi64>, tensor<10x4xf32>) -> tensor<2x4xf32>
  %1 = mico.softmax(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}
