func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %p = fixed.encode %x : tensor<4xf32> -> tensor<4x!fixed.point<8, 5>>
  %y = fixed.decode %p : tensor<4x!fixed.point<8, 5>> -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
