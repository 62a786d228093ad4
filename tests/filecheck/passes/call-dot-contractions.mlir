// Matmuls of bytes that a run computes call functions with dot instructions.
// RUN: fewbit-opt %s -p call-dots,call-dot-contractions -t vexii --split-input-file | filecheck %s

// Queries and keys of two heads: rows of both lie one after another.
// CHECK-LABEL: func.func @heads
// CHECK:         %[[SUMS:.*]] = memref.alloc() {alignment = 64 : i64} : memref<2x5x6xi32>
// CHECK:         %[[ROOM:.*]] = memref.alloc() {alignment = 64 : i64} : memref<80xi8>
// CHECK:         func.call @kernel.000_linalg_generic(%{{.*}}, %{{.*}}, %[[SUMS]], %[[ROOM]],
// CHECK-NEXT:    bufferization.to_tensor %[[SUMS]]
// CHECK-NOT:     linalg.generic
func.func @heads(%q: tensor<2x5x8xi8>, %k: tensor<2x6x8xi8>) -> tensor<2x5x6xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<2x5x6xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<2x5x6xi32>) -> tensor<2x5x6xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(h, i, j, d) -> (h, i, d)>, affine_map<(h, i, j, d) -> (h, j, d)>, affine_map<(h, i, j, d) -> (h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%q, %k : tensor<2x5x8xi8>, tensor<2x6x8xi8>) outs(%f : tensor<2x5x6xi32>) {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %x = arith.extsi %a : i8 to i32
    %w = arith.extsi %b : i8 to i32
    %p = arith.muli %x, %w : i32
    %t = arith.addi %acc, %p : i32
    linalg.yield %t : i32
  } -> tensor<2x5x6xi32>
  func.return %y : tensor<2x5x6xi32>
}

// -----

// Left alone: rows that are no whole words, a second matrix whose columns lie one after another.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     func.call
func.func @kept(%q: tensor<5x7xi8>, %k: tensor<6x7xi8>, %x: tensor<5x8xi8>, %w: tensor<8x6xi8>) -> (tensor<5x6xi32>, tensor<5x6xi32>) {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<5x6xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<5x6xi32>) -> tensor<5x6xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (j, d)>, affine_map<(i, j, d) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%q, %k : tensor<5x7xi8>, tensor<6x7xi8>) outs(%f : tensor<5x6xi32>) {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %u = arith.extsi %a : i8 to i32
    %v = arith.extsi %b : i8 to i32
    %p = arith.muli %u, %v : i32
    %t = arith.addi %acc, %p : i32
    linalg.yield %t : i32
  } -> tensor<5x6xi32>
  %z = linalg.generic {indexing_maps = [affine_map<(i, j, d) -> (i, d)>, affine_map<(i, j, d) -> (d, j)>, affine_map<(i, j, d) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<5x8xi8>, tensor<8x6xi8>) outs(%f : tensor<5x6xi32>) {
  ^bb0(%a: i8, %b: i8, %acc: i32):
    %u = arith.extsi %a : i8 to i32
    %v = arith.extsi %b : i8 to i32
    %p = arith.muli %u, %v : i32
    %t = arith.addi %acc, %p : i32
    linalg.yield %t : i32
  } -> tensor<5x6xi32>
  func.return %y, %z : tensor<5x6xi32>, tensor<5x6xi32>
}
