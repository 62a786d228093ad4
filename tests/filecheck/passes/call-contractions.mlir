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

// A matrix with the layout of a panel is not packed, and one that was widened is read as f16.
// CHECK-LABEL: func.func @halves
// CHECK-NOT:     pack
// CHECK:         %[[H:.*]] = bufferization.to_buffer %h read_only : tensor<32x16xf16>
// CHECK:         func.call @kernel.000_linalg_matmul(%{{.*}}, %[[H]],
// CHECK:         func.return
func.func @halves(%a: tensor<16x32xf32>, %h: tensor<32x16xf16>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %o = tensor.empty() : tensor<32x16xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<32x16xf16>) outs(%o : tensor<32x16xf32>) {
  ^bb0(%x: f16, %y: f32):
    %w = arith.extf %x : f16 to f32
    linalg.yield %w : f32
  } -> tensor<32x16xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %y : tensor<16x16xf32>
}

// -----

// One that was widened from bytes is read as bytes.
// CHECK-LABEL: func.func @bytes
// CHECK-NOT:     pack
// CHECK:         %[[H:.*]] = bufferization.to_buffer %h read_only : tensor<32x16xi8>
// CHECK:         func.call @kernel.000_linalg_matmul(%{{.*}}, %[[H]],
// CHECK:         func.return
func.func @bytes(%a: tensor<16x32xf32>, %h: tensor<32x16xi8>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %four = arith.constant 4 : i8
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %o = tensor.empty() : tensor<32x16xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<32x16xi8>) outs(%o : tensor<32x16xf32>) {
  ^bb0(%x: i8, %y: f32):
    %w = arith.sitofp %x : i8 to f32
    linalg.yield %w : f32
  } -> tensor<32x16xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %y : tensor<16x16xf32>
}

// -----

// And one of halves of bytes: the lower ones, with their signs.
// CHECK-LABEL: func.func @low
// CHECK-NOT:     pack
// CHECK:         %[[H:.*]] = bufferization.to_buffer %h read_only : tensor<32x16xi8>
// CHECK:         func.call @kernel.000_linalg_matmul(%{{.*}}, %[[H]],
// CHECK:         func.return
func.func @low(%a: tensor<16x32xf32>, %h: tensor<32x16xi8>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %four = arith.constant 4 : i8
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %o = tensor.empty() : tensor<32x16xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<32x16xi8>) outs(%o : tensor<32x16xf32>) {
  ^bb0(%x: i8, %y: f32):
    %u = arith.shli %x, %four : i8
    %d = arith.shrsi %u, %four : i8
    %w = arith.sitofp %d : i8 to f32
    linalg.yield %w : f32
  } -> tensor<32x16xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %y : tensor<16x16xf32>
}

// -----

// Other bits of a byte are no half of it, and are widened in memory.
// CHECK-LABEL: func.func @shifted
// CHECK-NOT:     bufferization.to_buffer %h
// CHECK:         func.call @kernel.000_linalg_matmul(
// CHECK:         func.return
func.func @shifted(%a: tensor<16x32xf32>, %h: tensor<32x16xi8>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %four = arith.constant 4 : i8
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %o = tensor.empty() : tensor<32x16xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%h : tensor<32x16xi8>) outs(%o : tensor<32x16xf32>) {
  ^bb0(%x: i8, %y: f32):
    %two = arith.constant 2 : i8
    %d = arith.shrsi %x, %two : i8
    %w = arith.sitofp %d : i8 to f32
    linalg.yield %w : f32
  } -> tensor<32x16xf32>
  %y = linalg.matmul ins(%a, %b : tensor<16x32xf32>, tensor<32x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  func.return %y : tensor<16x16xf32>
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
