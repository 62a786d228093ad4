// Two vectors, element by element.
func.func @add(%a: tensor<10xf32>, %b: tensor<10xf32>) -> tensor<10xf32> {
  %sum = arith.addf %a, %b : tensor<10xf32>
  return %sum : tensor<10xf32>
}
