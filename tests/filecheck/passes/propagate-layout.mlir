// RUN: fewbit-opt %s -p select-kernels,propagate-layout | filecheck %s

// One transpose at the input, one at the output, and none between.
// CHECK-LABEL: func.func @network
// CHECK:         %[[X:.*]] = mico.transpose(%x) {permutation = [0, 2, 3, 1]}
// CHECK-NEXT:    %[[A:.*]] = kernel.conv2d(%[[X]], %w)
// CHECK-NEXT:    %[[R:.*]] = mico.relu(%[[A]])
// CHECK-NEXT:    %[[P:.*]] = kernel.pool2d(%[[R]])
// CHECK-NEXT:    %[[U:.*]], %[[S:.*]] = kernel.quantize_rows(%[[P]]) {bits = 8 : i32, granularity = "sample"} : (tensor<?x4x4x3xf32>)
// CHECK-NEXT:    %[[B:.*]] = kernel.conv2d(%[[U]], %v) x_scale(%[[S]]) weight_scale(%s) {{.*}} -> tensor<?x4x4x3xf32>
// CHECK-NEXT:    %[[SUM:.*]] = mico.add(%[[B]], %[[P]])
// CHECK-NEXT:    %[[Y:.*]] = mico.transpose(%[[SUM]]) {permutation = [0, 3, 1, 2]}
// CHECK-NEXT:    func.return %[[Y]]
func.func @network(%x: tensor<?x3x8x8xf32>, %w: tensor<3x3x1x1xf32>, %v: tensor<3x3x1x1x!mico.int<4>>, %s: f32) -> tensor<?x3x4x4xf32> {
  %0 = mico.bitconv2d(%x, %w) : (tensor<?x3x8x8xf32>, tensor<3x3x1x1xf32>) -> tensor<?x3x8x8xf32>
  %1 = mico.relu(%0) : (tensor<?x3x8x8xf32>) -> tensor<?x3x8x8xf32>
  %2 = mico.maxpool2d(%1) {kernel_size = [2, 2]} : (tensor<?x3x8x8xf32>) -> tensor<?x3x4x4xf32>
  %3 = mico.bitconv2d(%2, %v) weight_scale(%s) {act_bits = 8} : (tensor<?x3x4x4xf32>, tensor<3x3x1x1x!mico.int<4>>, f32) -> tensor<?x3x4x4xf32>
  %4 = mico.add(%3, %2) : (tensor<?x3x4x4xf32>, tensor<?x3x4x4xf32>) -> tensor<?x3x4x4xf32>
  func.return %4 : tensor<?x3x4x4xf32>
}

// A batch norm is given rows of channels; an image of one channel is reshaped.
// CHECK-LABEL: func.func @norm
// CHECK:         mico.reshape(%x) {shape = [0, 5, 5, 1]}
// CHECK:         %[[Y:.*]] = kernel.conv2d
// CHECK:         mico.reshape(%[[Y]]) {shape = [-1, 2]} : (tensor<?x5x5x2xf32>) -> tensor<?x2xf32>
// CHECK:         mico.batch_norm
// CHECK:         mico.reshape(%{{.*}}) {shape = [-1, 5, 5, 2]} : (tensor<?x2xf32>) -> tensor<?x5x5x2xf32>
// CHECK:         mico.transpose
func.func @norm(%x: tensor<?x1x5x5xf32>, %w: tensor<2x1x1x1xf32>, %c: tensor<2xf32>) -> tensor<?x2x5x5xf32> {
  %0 = mico.bitconv2d(%x, %w) : (tensor<?x1x5x5xf32>, tensor<2x1x1x1xf32>) -> tensor<?x2x5x5xf32>
  %1 = mico.batch_norm(%0, %c, %c, %c, %c) : (tensor<?x2x5x5xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x2x5x5xf32>
  func.return %1 : tensor<?x2x5x5xf32>
}

// Left alone: the order of dimensions has a meaning for attention.
// CHECK-LABEL: func.func @stopped
// CHECK-NEXT:    %[[T:.*]] = mico.transpose(%x) {permutation = [0, 3, 1, 2]}
// CHECK-NEXT:    %[[S:.*]] = mico.attention(%[[T]], %[[T]], %[[T]])
// CHECK-NEXT:    mico.transpose(%[[S]]) {permutation = [0, 2, 3, 1]}
func.func @stopped(%x: tensor<1x4x4x2xf32>) -> tensor<1x4x4x2xf32> {
  %0 = mico.transpose(%x) {permutation = [0, 3, 1, 2]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x4x4xf32>
  %1 = mico.attention(%0, %0, %0) : (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  %2 = mico.transpose(%1) {permutation = [0, 2, 3, 1]} : (tensor<1x2x4x4xf32>) -> tensor<1x4x4x2xf32>
  func.return %2 : tensor<1x4x4x2xf32>
}
