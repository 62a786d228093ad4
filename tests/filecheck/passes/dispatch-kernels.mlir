// Layers become dispatches of our own kernels; their executable stands in front of IREE's source.
// RUN: fewbit-opt %s -p dispatch-kernels -t cpu:x86-64-v3 --split-input-file | filecheck %s
// RUN: fewbit-opt %s -p dispatch-kernels,lower-kernel,bind-parameters,to-iree-source -t cpu:x86-64-v3 --split-input-file | filecheck %s --check-prefix=SOURCE

// A dispatch is on tensors: IREE plans the memory.
// CHECK-LABEL: func.func @layer
// CHECK:         %[[W:.*]] = mico.get_constant @w.matmul.packed
// CHECK-NOT:     memref.
// CHECK:         flow.dispatch{{.*}}(%x, %[[W]]){{.*}}@kernels::@kernel.000_kernel_matmul.dispatch{{.*}}-> tensor<2x4xf32>
// CHECK-NOT:     func.call

// SOURCE: stream.executable private @kernels
// SOURCE: hal.executable.object<{path = "kernels.o"}>
// SOURCE: stream.executable.export public @"kernel.000_kernel_matmul.dispatch"
// SOURCE: func.func private @"kernel.000_kernel_matmul"({{.*}}) attributes {hal.import.static, kernel = "fewbit_matmul_f32", macs = 64}
mico.constant @w : tensor<4x8xf32> = dense<1.0>
func.func @layer(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %y = kernel.matmul(%x, @w) : (tensor<2x8xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// Left alone: means, which no kernel of ours computes.
// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    kernel.pool2d(%x)
// SOURCE: // -----
// SOURCE-NOT: stream.executable
func.func @kept(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32> {
  %y = kernel.pool2d(%x) {kind = "average", kernel_size = [2, 2]} : (tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32>
  func.return %y : tensor<1x2x2x2xf32>
}
