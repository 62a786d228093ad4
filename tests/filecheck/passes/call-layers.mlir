// Layers become calls of GPU kernels on memory; which kernel is decided once sizes are known.
// RUN: fewbit-opt %s -p call-layers -t cuda:sm_80 --split-input-file | filecheck %s

// The weight's channels go last; bias and bounds are the kernel's.
// CHECK-LABEL: func.func @layer
// CHECK:         %[[TURNED:.*]] = linalg.generic {{.*}} ins(%w : tensor<6x4x3x3xf32>) outs(%{{.*}} : tensor<6x3x3x4xf32>)
// CHECK:         %[[OUT:.*]] = memref.alloc() {alignment = 256 : i64} : memref<1x8x8x6xf32>
// CHECK:         %[[X:.*]] = bufferization.to_buffer %x read_only
// CHECK-NEXT:    %[[W:.*]] = bufferization.to_buffer %[[TURNED]] read_only
// CHECK-NEXT:    %[[B:.*]] = bufferization.to_buffer %b read_only
// CHECK-NEXT:    func.call @gpu.000(%[[X]], %[[W]], %[[B]], %[[OUT]])
// CHECK-NEXT:    %[[Y:.*]] = bufferization.to_tensor %[[OUT]] restrict
// CHECK-NEXT:    func.return %[[Y]]
// CHECK: func.func private @gpu.000(
func.func @layer(%x: tensor<1x8x8x4xf32>, %w: tensor<6x4x3x3xf32>, %b: tensor<6xf32>) -> tensor<1x8x8x6xf32> {
  %y = kernel.conv2d(%x, %w) bias(%b) {padding = [1, 1, 1, 1], minimum = 0.0} : (tensor<1x8x8x4xf32>, tensor<6x4x3x3xf32>, tensor<6xf32>) -> tensor<1x8x8x6xf32>
  func.return %y : tensor<1x8x8x6xf32>
}

// -----

// Left alone: means, and padding that is not the same on both sides.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    kernel.pool2d(%x)
// CHECK-NEXT:    kernel.conv2d(%x, %w)
// CHECK-NOT:     func.call
func.func @kept(%x: tensor<1x8x8x4xf32>, %w: tensor<6x4x3x3xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x7x7x6xf32>) {
  %y = kernel.pool2d(%x) {kind = "average", kernel_size = [2, 2]} : (tensor<1x8x8x4xf32>) -> tensor<1x4x4x4xf32>
  %z = kernel.conv2d(%x, %w) {padding = [1, 0, 1, 0]} : (tensor<1x8x8x4xf32>, tensor<6x4x3x3xf32>) -> tensor<1x7x7x6xf32>
  func.return %y, %z : tensor<1x4x4x4xf32>, tensor<1x7x7x6xf32>
}
