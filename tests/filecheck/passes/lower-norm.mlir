// Normalizations become loops: statistics first, summed in f64, then one loop over all in f32.
// RUN: fewbit-opt %s -p lower-norm | filecheck %s

// A factor for each channel, weight / sqrt(variance + eps).
// CHECK-LABEL: func.func @batch_norm
// CHECK:         %[[FACTOR:.*]] = linalg.generic {{.*}} ins(%w, %v : tensor<3xf32>, tensor<3xf32>)
// CHECK:           math.sqrt
// CHECK-NEXT:      arith.divf
// CHECK:         linalg.generic {{.*}} ins(%x, %m, %[[FACTOR]], %b :
// CHECK:           arith.subf
// CHECK-NEXT:      arith.mulf
// CHECK:           arith.addf %{{.*}} : f64
// CHECK-NEXT:      arith.truncf
func.func @batch_norm(%x: tensor<?x3x5xf32>, %w: tensor<3xf32>, %b: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>) -> tensor<?x3x5xf32> {
  %y = mico.batch_norm(%x, %w, %b, %m, %v) : (tensor<?x3x5xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<?x3x5xf32>
  func.return %y : tensor<?x3x5xf32>
}

// The mean, what differs from it, and the mean of its squares.
// CHECK-LABEL: func.func @layer_norm
// CHECK:         linalg.generic {{.*}}"reduction"]} ins(%x : tensor<2x4xf32>)
// CHECK:         arith.constant 4.000000e+00 : f64
// CHECK:         %[[MEAN:.*]] = linalg.generic
// CHECK:         %[[MIDDLE:.*]] = linalg.generic {{.*}} ins(%x, %[[MEAN]] :
// CHECK:         %[[SQUARES:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[MIDDLE]] :
// CHECK:         %[[VARIANCE:.*]] = linalg.generic {{.*}} ins(%[[SQUARES]] :
// CHECK:         linalg.generic {{.*}} ins(%[[MIDDLE]], %[[VARIANCE]], %w, %b :
func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = mico.layer_norm(%x, %w, %b) : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// Squares of f16 are summed in f64; the rest is computed in f32.
// CHECK-LABEL: func.func @rms_norm
// CHECK:         linalg.generic {{.*}}"reduction"]} ins(%x : tensor<2x4xf16>) outs(%{{.*}} : tensor<2xf64>)
// CHECK:           arith.extf %{{.*}} : f16 to f64
// CHECK:           arith.truncf %{{.*}} : f64 to f32
// CHECK:           arith.truncf %{{.*}} : f32 to f16
func.func @rms_norm(%x: tensor<2x4xf16>, %w: tensor<4xf16>) -> tensor<2x4xf16> {
  %y = mico.rms_norm(%x, %w) : (tensor<2x4xf16>, tensor<4xf16>) -> tensor<2x4xf16>
  func.return %y : tensor<2x4xf16>
}

// Left alone: softmax, which is no normalization of this kind.
// CHECK-LABEL: func.func @softmax
// CHECK-NEXT:    mico.softmax(%x)
func.func @softmax(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = mico.softmax(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
