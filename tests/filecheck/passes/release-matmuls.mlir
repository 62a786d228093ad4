// What name-matmuls added to keep matmuls whole is removed once loops are fused.
// RUN: fewbit-opt %s -p release-matmuls | filecheck %s

// CHECK-LABEL: func.func @matmul
// CHECK-NEXT:    %[[Y:.*]] = linalg.matmul
// CHECK-NEXT:    return %[[Y]]
func.func @matmul(%x: tensor<4x6xf32>, %w: tensor<6x5xf32>, %e: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %y = linalg.matmul ins(%x, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%e : tensor<4x5xf32>) -> tensor<4x5xf32>
  bufferization.dealloc_tensor %x : tensor<4x6xf32>
  bufferization.dealloc_tensor %y : tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// Left alone: the end of memory, which is no tensor.
// CHECK-LABEL: func.func @memory
// CHECK-NEXT:    memref.dealloc %arg0
func.func @memory(%x: memref<4xf32>) {
  memref.dealloc %x : memref<4xf32>
  return
}
