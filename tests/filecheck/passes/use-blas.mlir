// Matmuls become calls of a BLAS library.
// RUN: fewbit-opt %s -p 'use-blas{library=openblas}' --split-input-file | filecheck %s
// RUN: not fewbit-opt %s -p use-blas --split-input-file 2>&1 | filecheck %s --check-prefix=NONE

// NONE: a pass needs to know the cblas, and nothing before it said so

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// Rows first, nothing transposed, 4 x 5 of 6; what was there counts 0 times.
// CHECK-LABEL: func.func @program.entry
// CHECK:         call @blas_000(%arg0, %arg1, %arg2, %c0, %c1)
// CHECK-NOT:     linalg.contract
// CHECK-LABEL: func.func private @blas_000
// CHECK:         %[[ONCE:.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:    %[[NEVER:.*]] = arith.constant 0.000000e+00 : f32
// CHECK:         func.call @cblas_sgemm(%c101_i32, %c111_i32, %c111_i32, %c4_i32, %c5_i32, %c6_i32, %[[ONCE]], %{{.*}}, %c6_i32, %{{.*}}, %c5_i32, %[[NEVER]], %{{.*}}, %c5_i32)
func.func @program.entry(%x: memref<4x6xf32>, %w: memref<6x5xf32>, %y: memref<4x5xf32>) {
  linalg.contract indexing_maps = [#a, #b, #c] {from_zero} ins(%x, %w : memref<4x6xf32>, memref<6x5xf32>) outs(%y : memref<4x5xf32>)
  return
}

// -----

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// Left alone: there are gaps between the elements of a row. Zeros are written again.
// CHECK-LABEL: func.func @program.entry
// CHECK-NOT:     call
// CHECK:         linalg.fill ins(%{{.*}} : f32) outs(%arg2 :
// CHECK-NEXT:    linalg.contract
// CHECK-NOT:     from_zero
func.func @program.entry(%x: memref<4x6xf32, strided<[12, 2]>>, %w: memref<6x5xf32, strided<[20, 2]>>, %y: memref<4x5xf32>) {
  linalg.contract indexing_maps = [#a, #b, #c] {from_zero} ins(%x, %w : memref<4x6xf32, strided<[12, 2]>>, memref<6x5xf32, strided<[20, 2]>>) outs(%y : memref<4x5xf32>)
  return
}
