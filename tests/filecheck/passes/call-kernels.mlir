// Layers that a generated kernel computes become calls on memory; weights are packed for it.
// RUN: fewbit-opt %s -p call-kernels -t cpu:x86-64-v3 --split-input-file | filecheck %s

// A panel of 8 columns for a depth of 8, though there are 4 outputs.
// CHECK: mico.constant @w.matmul.packed : tensor<64xf32>
mico.constant @w : tensor<4x8xf32> = dense<1.0>

// CHECK-LABEL: func.func @layer
// CHECK:         %[[W:.*]] = mico.get_constant @w.matmul.packed
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK-NEXT:    %[[OUT:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x4xf32>
// CHECK-NEXT:    %[[X:.*]] = bufferization.to_buffer %x read_only
// CHECK-NEXT:    %[[PANELS:.*]] = bufferization.to_buffer %[[W]] read_only
// CHECK:         func.call @[[KERNEL:kernel.000_kernel_matmul]](%[[X]], %[[PANELS]], %[[OUT]], %{{.*}}, %{{.*}})
// CHECK-NEXT:    %[[Y:.*]] = bufferization.to_tensor %[[OUT]] restrict
// CHECK-NEXT:    func.return %[[Y]]
// CHECK: func.func private @[[KERNEL]](memref<?x8xf32>, memref<64xf32>, memref<?x4xf32>, index, index) -> ()
func.func @layer(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %y = kernel.matmul(%x, @w) {minimum = 0.0} : (tensor<?x8xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}

// -----

// Rotations, too; blocks that are shorter than a vector are left to loops.
// CHECK-LABEL: func.func @rotation
// CHECK:         %[[N:.*]] = tensor.dim %x
// CHECK-NEXT:    %[[X:.*]] = bufferization.to_buffer %x read_only
// CHECK-NEXT:    %[[OUT:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x64xf32>
// CHECK:         func.call @[[KERNEL:kernel.000_rotate_mico_hadamard]](%[[X]], %[[OUT]], %{{.*}}, %{{.*}})
// CHECK-NEXT:    %[[Y:.*]] = bufferization.to_tensor %[[OUT]] restrict
// CHECK-NEXT:    mico.hadamard(%[[Y]]) {block = 4 : i32}
// CHECK: func.func private @[[KERNEL]](memref<?x64xf32>, memref<?x64xf32>, index, index) -> ()
func.func @rotation(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %y = mico.hadamard(%x) {block = 32 : i32} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %z = mico.hadamard(%y) {block = 4 : i32} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  func.return %z : tensor<?x64xf32>
}

// -----

// Left alone: integers whose weight a run computes, and means.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    kernel.matmul(%u, %w)
// CHECK-NEXT:    kernel.pool2d(%x)
// CHECK-NEXT:    func.return
func.func @kept(%u: tensor<?x8x!mico.int<8>>, %w: tensor<4x8x!mico.int<4>>, %s: f32, %x: tensor<1x4x4x2xf32>) -> (tensor<?x4xf32>, tensor<1x2x2x2xf32>) {
  %y = kernel.matmul(%u, %w) x_scale(%s) weight_scale(%s) : (tensor<?x8x!mico.int<8>>, tensor<4x8x!mico.int<4>>, f32, f32) -> tensor<?x4xf32>
  %z = kernel.pool2d(%x) {kind = "average", kernel_size = [2, 2]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  func.return %y, %z : tensor<?x4xf32>, tensor<1x2x2x2xf32>
}
