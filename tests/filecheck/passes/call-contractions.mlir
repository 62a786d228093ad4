// Matmuls that are not layers call the matrix kernel, with a matrix that is packed at run time.
// RUN: fewbit-opt %s -p call-kernels,call-contractions -t cpu:x86-64-v3 --split-input-file | filecheck %s

// CHECK-LABEL: func.func @packed
// CHECK:         func.call @kernel.000_pack_linalg_matmul(
// CHECK:         func.call @kernel.001_linalg_matmul(
// CHECK-NOT:     linalg.matmul
// CHECK:         func.return
func.func @packed(%a: tensor<16x32xf32>, %b: tensor<32x20xf32>) -> tensor<16x20xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x20xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x20xf32>) -> tensor<16x20xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x20xf32>) outs(%f : tensor<16x20xf32>) -> tensor<16x20xf32>
  func.return %y : tensor<16x20xf32>
}

// -----

// Left alone: few multiplications, and elements that no kernel multiplies.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     func.call
// CHECK:         linalg.matmul ins(%a, %b :
// CHECK:         linalg.matmul ins(%c, %d :
// CHECK-NOT:     func.call
func.func @kept(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>, %c: tensor<16x16xf64>, %d: tensor<16x16xf64>) -> (tensor<2x2xf32>, tensor<16x16xf64>) {
  %y = linalg.matmul ins(%a, %b : tensor<2x2xf32>, tensor<2x2xf32>) outs(%b : tensor<2x2xf32>) -> tensor<2x2xf32>
  %z = linalg.matmul ins(%c, %d : tensor<16x16xf64>, tensor<16x16xf64>) outs(%d : tensor<16x16xf64>) -> tensor<16x16xf64>
  func.return %y, %z : tensor<2x2xf32>, tensor<16x16xf64>
}
