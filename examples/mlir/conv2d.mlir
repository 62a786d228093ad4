// A convolution of one image, channels last, and what a network does with it next.
func.func @conv2d(%image: tensor<1x8x8x3xf32>, %kernel: tensor<3x3x3x4xf32>) -> tensor<1x6x6x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1x6x6x4xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %sums = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%image, %kernel : tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) outs(%start : tensor<1x6x6x4xf32>) -> tensor<1x6x6x4xf32>
  %zeros = arith.constant dense<0.0> : tensor<1x6x6x4xf32>
  %positive = arith.maximumf %sums, %zeros : tensor<1x6x6x4xf32>
  return %positive : tensor<1x6x6x4xf32>
}
