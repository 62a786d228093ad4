// A contraction with a constant operand is a layer, however it is written.
// RUN: fewbit-opt %s -p recognize-layers | filecheck %s

mico.constant @w : tensor<4x3xf32> = dense<1.0>
mico.constant @half : tensor<4x3xf16> = dense<1.0>
mico.constant @wide : tensor<4x3xf64> = dense<1.0>
mico.constant @stack : tensor<2x4x3xf32> = dense<1.0>
mico.constant @bias : tensor<3xf32> = dense<1.0>
mico.constant @line : tensor<4xf32> = dense<1.0>
mico.constant @frequencies : tensor<3x1xf32> = dense<1.0>

// The weight is transposed to output by input channels; the vector that is added is the bias, and rows
// keep their dimensions.
// CHECK-LABEL: func.func @matmul
// CHECK-DAG:     %[[W:.*]] = mico.get_constant @w
// CHECK-DAG:     %[[T:.*]] = mico.transpose(%[[W]]) {permutation = [1, 0]}
// CHECK-DAG:     %[[B:.*]] = mico.get_constant @bias
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x, %[[T]], %[[B]]) : (tensor<2x5x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @matmul(%x: tensor<2x5x4xf32>) -> tensor<2x5x3xf32> {
  %w = mico.get_constant @w : tensor<4x3xf32>
  %b = mico.get_constant @bias : tensor<3xf32>
  %rows = mico.reshape(%x) {shape = [10, 4]} : (tensor<2x5x4xf32>) -> tensor<10x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<10x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<10x3xf32>) -> tensor<10x3xf32>
  %m = linalg.matmul ins(%rows, %w : tensor<10x4xf32>, tensor<4x3xf32>) outs(%f : tensor<10x3xf32>) -> tensor<10x3xf32>
  %r = mico.reshape(%m) {shape = [2, 5, 3]} : (tensor<10x3xf32>) -> tensor<2x5x3xf32>
  %y = mico.add(%r, %b) : (tensor<2x5x3xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
  func.return %y : tensor<2x5x3xf32>
}

// The sum of 16-bit floats is rounded behind the matmul, and so within the layer.
// CHECK-LABEL: func.func @rounded
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x, %{{.*}}) : (tensor<?x4xf16>, tensor<3x4xf16>) -> tensor<?x3xf16>
// CHECK-NEXT:    func.return %[[Y]]
func.func @rounded(%x: tensor<?x4xf16>) -> tensor<?x3xf16> {
  %w = mico.get_constant @half : tensor<4x3xf16>
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 0 : index
  %n = tensor.dim %x, %i : tensor<?x4xf16>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %m = linalg.matmul ins(%x, %w : tensor<?x4xf16>, tensor<4x3xf16>) outs(%f : tensor<?x3xf32>) -> tensor<?x3xf32>
  %o = tensor.empty(%n) : tensor<?x3xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%m : tensor<?x3xf32>) outs(%o : tensor<?x3xf16>) {
  ^bb0(%a: f32, %b: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x3xf16>
  func.return %y : tensor<?x3xf16>
}

// The constant may stand first, and the result in any order.
// CHECK-LABEL: func.func @einsum
// CHECK:         %[[X:.*]] = mico.transpose(%x) {permutation = [1, 0]} : (tensor<4x?xf32>) -> tensor<?x4xf32>
// CHECK:         %[[Y:.*]] = mico.bitlinear(%[[X]], %{{.*}}) : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x3xf32>
// CHECK-NEXT:    %[[R:.*]] = mico.transpose(%[[Y]]) {permutation = [1, 0]}
// CHECK-NEXT:    func.return %[[R]]
func.func @einsum(%x: tensor<4x?xf32>) -> tensor<3x?xf32> {
  %w = mico.get_constant @w : tensor<4x3xf32>
  %zero = arith.constant 0.0 : f32
  %i = arith.constant 1 : index
  %n = tensor.dim %x, %i : tensor<4x?xf32>
  %e = tensor.empty(%n) : tensor<3x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x?xf32>) -> tensor<3x?xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(n, m, k) -> (k, n)>, affine_map<(n, m, k) -> (k, m)>, affine_map<(n, m, k) -> (n, m)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%w, %x : tensor<4x3xf32>, tensor<4x?xf32>) outs(%f : tensor<3x?xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %c : f32
    linalg.yield %s : f32
  } -> tensor<3x?xf32>
  func.return %y : tensor<3x?xf32>
}

// Matrices in a stack are layers of their own.
// CHECK-LABEL: func.func @stacked
// CHECK:         %[[X0:.*]] = tensor.extract_slice %x[0, 0, 0] [1, 5, 4]
// CHECK:         %[[Y0:.*]] = mico.bitlinear(%[[X0]], %{{.*}}) : (tensor<1x5x4xf32>, tensor<3x4xf32>)
// CHECK:         %[[X1:.*]] = tensor.extract_slice %x[1, 0, 0] [1, 5, 4]
// CHECK:         %[[Y1:.*]] = mico.bitlinear(%[[X1]], %{{.*}})
// CHECK-NEXT:    mico.concat(%[[Y0]], %[[Y1]]) {dim = 0 : i32}
func.func @stacked(%x: tensor<2x5x4xf32>) -> tensor<2x5x3xf32> {
  %w = mico.get_constant @stack : tensor<2x4x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %y = linalg.batch_matmul ins(%x, %w : tensor<2x5x4xf32>, tensor<2x4x3xf32>) outs(%f : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  func.return %y : tensor<2x5x3xf32>
}

// An input that is repeated for each matrix is one input of one layer.
// CHECK-LABEL: func.func @repeated
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x, %{{.*}}) : (tensor<5x4xf32>, tensor<6x4xf32>) -> tensor<5x6xf32>
// CHECK-NEXT:    %[[R:.*]] = mico.reshape(%[[Y]]) {shape = [5, 2, 3]}
// CHECK-NEXT:    mico.transpose(%[[R]]) {permutation = [1, 0, 2]}
func.func @repeated(%x: tensor<5x4xf32>) -> tensor<2x5x3xf32> {
  %w = mico.get_constant @stack : tensor<2x4x3xf32>
  %zero = arith.constant 0.0 : f32
  %b = tensor.empty() : tensor<2x5x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<5x4xf32>) outs(%b : tensor<2x5x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x5x4xf32>
  %e = tensor.empty() : tensor<2x5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %y = linalg.batch_matmul ins(%r, %w : tensor<2x5x4xf32>, tensor<2x4x3xf32>) outs(%f : tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  func.return %y : tensor<2x5x3xf32>
}

// One matrix for all of a batch, repeated along dimensions that are then joined, is one layer.
// CHECK-LABEL: func.func @joined
// CHECK:         %[[W:.*]] = mico.transpose({{.*}}) {permutation = [1, 0]}
// CHECK:         mico.bitlinear(%x, %[[W]]) : (tensor<6x5x4xf32>, tensor<3x4xf32>) -> tensor<6x5x3xf32>
// CHECK-NOT:     mico.bitlinear
// CHECK:         func.return
func.func @joined(%x: tensor<6x5x4xf32>) -> tensor<6x5x3xf32> {
  %w = mico.get_constant @w : tensor<4x3xf32>
  %zero = arith.constant 0.0 : f32
  %b = tensor.empty() : tensor<2x3x4x3xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, k, n) -> (k, n)>, affine_map<(a, b, k, n) -> (a, b, k, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w : tensor<4x3xf32>) outs(%b : tensor<2x3x4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<2x3x4x3xf32>
  %j = mico.reshape(%r) {shape = [6, 4, 3]} : (tensor<2x3x4x3xf32>) -> tensor<6x4x3xf32>
  %e = tensor.empty() : tensor<6x5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x5x3xf32>) -> tensor<6x5x3xf32>
  %y = linalg.batch_matmul ins(%x, %j : tensor<6x5x4xf32>, tensor<6x4x3xf32>) outs(%f : tensor<6x5x3xf32>) -> tensor<6x5x3xf32>
  func.return %y : tensor<6x5x3xf32>
}

// Left alone: both operands are computed; the sum begins with something; floats of 64 bits.
// CHECK-LABEL: func.func @others
// CHECK-NOT:     mico.bitlinear
// CHECK:         func.return
func.func @others(%x: tensor<4x4xf32>, %c: tensor<4x3xf32>, %d: tensor<4x4xf64>) -> (tensor<4x4xf32>, tensor<4x3xf32>, tensor<4x3xf64>) {
  %w = mico.get_constant @w : tensor<4x3xf32>
  %wide = mico.get_constant @wide : tensor<4x3xf64>
  %zero = arith.constant 0.0 : f32
  %wide_zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = tensor.empty() : tensor<4x3xf64>
  %h = linalg.fill ins(%wide_zero : f64) outs(%g : tensor<4x3xf64>) -> tensor<4x3xf64>
  %0 = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%x, %w : tensor<4x4xf32>, tensor<4x3xf32>) outs(%c : tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = linalg.matmul ins(%d, %wide : tensor<4x4xf64>, tensor<4x3xf64>) outs(%h : tensor<4x3xf64>) -> tensor<4x3xf64>
  func.return %0, %1, %2 : tensor<4x4xf32>, tensor<4x3xf32>, tensor<4x3xf64>
}

// Left alone: a sum of one term is none, and a vector is no weight.
// CHECK-LABEL: func.func @vectors
// CHECK-NOT:     mico.bitlinear
// CHECK:         func.return
func.func @vectors(%x: tensor<1x5xf32>, %z: tensor<5x4xf32>) -> (tensor<3x5xf32>, tensor<5xf32>) {
  %w = mico.get_constant @frequencies : tensor<3x1xf32>
  %v = mico.get_constant @line : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %g = tensor.empty() : tensor<5xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<5xf32>) -> tensor<5xf32>
  %0 = linalg.matmul ins(%w, %x : tensor<3x1xf32>, tensor<1x5xf32>) outs(%f : tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = linalg.matvec ins(%z, %v : tensor<5x4xf32>, tensor<4xf32>) outs(%h : tensor<5xf32>) -> tensor<5xf32>
  func.return %0, %1 : tensor<3x5xf32>, tensor<5xf32>
}

// Left alone: a bias that is not one for each channel, or that something else reads around.
// CHECK-LABEL: func.func @not_a_bias
// CHECK:         %[[Y:.*]] = mico.bitlinear(%x, %{{[^,]*}}) :
// CHECK:         mico.add(%[[Y]], %c)
func.func @not_a_bias(%x: tensor<5x4xf32>, %c: tensor<3xf32>) -> tensor<5x3xf32> {
  %w = mico.get_constant @w : tensor<4x3xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x3xf32>) -> tensor<5x3xf32>
  %m = linalg.matmul ins(%x, %w : tensor<5x4xf32>, tensor<4x3xf32>) outs(%f : tensor<5x3xf32>) -> tensor<5x3xf32>
  %y = mico.add(%m, %c) : (tensor<5x3xf32>, tensor<3xf32>) -> tensor<5x3xf32>
  func.return %y : tensor<5x3xf32>
}
