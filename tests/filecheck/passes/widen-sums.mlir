// RUN: fewbit-opt %s -p widen-sums | filecheck %s

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: func.func @sum
// CHECK:         [[ZERO:%.*]] = arith.constant 0.000000e+00 : f64
// CHECK:         [[START:%.*]] = linalg.fill ins([[ZERO]] : f64)
// CHECK:         [[SUM:%.*]] = linalg.generic {{.*}} ins(%x : tensor<4x?xf16>) outs([[START]] : tensor<4xf64>)
// CHECK:           [[TERM:%.*]] = arith.extf %{{.*}} : f16 to f64
// CHECK-NEXT:      [[GROWN:%.*]] = arith.addf %{{.*}}, [[TERM]] : f64
// CHECK-NEXT:      linalg.yield [[GROWN]] : f64
// CHECK:         linalg.generic {{.*}} ins([[SUM]] : tensor<4xf64>)
// CHECK:           arith.truncf %{{.*}} : f64 to f16
func.func @sum(%x: tensor<4x?xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4xf16>
  %start = linalg.fill ins(%zero : f16) outs(%e : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x?xf16>) outs(%start : tensor<4xf16>) {
  ^bb0(%a: f16, %s: f16):
    %t = arith.addf %s, %a : f16
    linalg.yield %t : f16
  } -> tensor<4xf16>
  func.return %sum : tensor<4xf16>
}

// A matmul of 16-bit floats: factors are widened before they are multiplied, and so is a start that
// is no constant.
// CHECK-LABEL: func.func @product
// CHECK:         linalg.generic {{.*}} ins(%start : tensor<4x5xbf16>)
// CHECK:           arith.extf
// CHECK:         linalg.generic
// CHECK:           arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:      arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT:      arith.mulf %{{.*}} : f32
// CHECK-NEXT:      arith.addf %{{.*}} : f32
// CHECK-NEXT:      linalg.yield
func.func @product(%x: tensor<4x6xbf16>, %y: tensor<6x5xbf16>, %start: tensor<4x5xbf16>) -> tensor<4x5xbf16> {
  %sum = linalg.matmul ins(%x, %y : tensor<4x6xbf16>, tensor<6x5xbf16>) outs(%start : tensor<4x5xbf16>) -> tensor<4x5xbf16>
  func.return %sum : tensor<4x5xbf16>
}

// CHECK-LABEL: func.func @reduce
// CHECK:         linalg.generic
// CHECK:           arith.mulf %{{.*}} : f64
func.func @reduce(%x: tensor<4x6xf16>, %start: tensor<6xf16>) -> tensor<6xf16> {
  %r = linalg.reduce ins(%x : tensor<4x6xf16>) outs(%start : tensor<6xf16>) dimensions = [0]
    (%a: f16, %s: f16) {
      %t = arith.mulf %a, %s : f16
      linalg.yield %t : f16
    }
  func.return %r : tensor<6xf16>
}

// Squares are sums of one value: exact in f64.
// CHECK-LABEL: func.func @squares
// CHECK:         linalg.generic {{.*}} ins(%x : tensor<4x6xf32>) outs(%{{.*}} : tensor<4xf64>)
// CHECK:           arith.mulf %{{.*}} : f64
// CHECK-NEXT:      arith.addf %{{.*}} : f64
func.func @squares(%x: tensor<4x6xf32>, %start: tensor<4xf32>) -> tensor<4xf32> {
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %s: f32):
    %p = arith.mulf %a, %a : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  func.return %sum : tensor<4xf32>
}

// A matmul of f32 accumulates in f32.
// CHECK-LABEL: func.func @matmul
// CHECK-NEXT:    linalg.matmul
func.func @matmul(%x: tensor<4x6xf32>, %y: tensor<6x5xf32>, %start: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %sum = linalg.matmul ins(%x, %y : tensor<4x6xf32>, tensor<6x5xf32>) outs(%start : tensor<4x5xf32>) -> tensor<4x5xf32>
  func.return %sum : tensor<4x5xf32>
}

// Left alone: exact in any type, wide already, or no reduction.
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     arith.extf
func.func @kept(%x: tensor<4x6xf16>, %y: tensor<4x6xf64>, %a: tensor<4xf16>, %b: tensor<4xf64>) -> (tensor<4xf16>, tensor<4xf64>, tensor<4x6xf16>) {
  %largest = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x6xf16>) outs(%a : tensor<4xf16>) {
  ^bb0(%e: f16, %s: f16):
    %t = arith.maximumf %s, %e : f16
    linalg.yield %t : f16
  } -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<4x6xf64>) outs(%b : tensor<4xf64>) {
  ^bb0(%e: f64, %s: f64):
    %t = arith.addf %s, %e : f64
    linalg.yield %t : f64
  } -> tensor<4xf64>
  %grown = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x6xf16>) outs(%x : tensor<4x6xf16>) {
  ^bb0(%e: f16, %s: f16):
    %t = arith.addf %s, %e : f16
    linalg.yield %t : f16
  } -> tensor<4x6xf16>
  func.return %largest, %sum, %grown : tensor<4xf16>, tensor<4xf64>, tensor<4x6xf16>
}
