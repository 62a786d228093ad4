// MiCo MLIR Module for LeNet-5 with Mixed Precision
module @lenet_mnist {
    // Weight constants
    mico.constant @conv1_weight : tensor<6x1x5x5x!mico.int<8>> = dense<...>
    mico.constant @conv1_bias : tensor<6xf32> = dense<...>
    mico.constant @conv2_weight : tensor<16x6x5x5x!mico.int<6>> = dense<...>
    mico.constant @conv2_bias : tensor<16xf32> = dense<...>
    mico.constant @fc1_weight : tensor<120x256x!mico.int<6>> = dense<...>
    mico.constant @fc1_bias : tensor<120xf32> = dense<...>
    mico.constant @fc2_weight : tensor<84x120x!mico.int<4>> = dense<...>
    mico.constant @fc2_bias : tensor<84xf32> = dense<...>
    mico.constant @fc3_weight : tensor<10x84x!mico.int<4>> = dense<...>
    mico.constant @fc3_bias : tensor<10xf32> = dense<...>
    
    func.func @forward(%input: tensor<1x1x28x28xf32>) -> tensor<1x10xf32> {
        // Conv1: W8A8
        %conv1 = mico.bitconv2d(%input, @conv1_weight, @conv1_bias) {
            weight_bits = 8, act_bits = 8, stride = [1, 1], padding = [0, 0]
        } : (tensor<1x1x28x28xf32>) -> tensor<1x6x24x24xf32>
        %relu1 = mico.relu(%conv1) : tensor<1x6x24x24xf32> -> tensor<1x6x24x24xf32>
        %pool1 = mico.maxpool2d(%relu1) {kernel_size = [2, 2], stride = [2, 2]} 
            : tensor<1x6x24x24xf32> -> tensor<1x6x12x12xf32>
        
        // Conv2: W6A8
        %conv2 = mico.bitconv2d(%pool1, @conv2_weight, @conv2_bias) {
            weight_bits = 6, act_bits = 8, stride = [1, 1], padding = [0, 0]
        } : (tensor<1x6x12x12xf32>) -> tensor<1x16x8x8xf32>
        %relu2 = mico.relu(%conv2) : tensor<1x16x8x8xf32> -> tensor<1x16x8x8xf32>
        %pool2 = mico.maxpool2d(%relu2) {kernel_size = [2, 2], stride = [2, 2]}
            : tensor<1x16x8x8xf32> -> tensor<1x16x4x4xf32>
        
        // Flatten
        %flat = mico.flatten(%pool2) {start_dim = 1} 
            : tensor<1x16x4x4xf32> -> tensor<1x256xf32>
        
        // FC1: W6A8
        %fc1 = mico.bitlinear(%flat, @fc1_weight, @fc1_bias) {
            weight_bits = 6, act_bits = 8
        } : (tensor<1x256xf32>) -> tensor<1x120xf32>
        %relu3 = mico.relu(%fc1) : tensor<1x120xf32> -> tensor<1x120xf32>
        
        // FC2: W4A8
        %fc2 = mico.bitlinear(%relu3, @fc2_weight, @fc2_bias) {
            weight_bits = 4, act_bits = 8
        } : (tensor<1x120xf32>) -> tensor<1x84xf32>
        %relu4 = mico.relu(%fc2) : tensor<1x84xf32> -> tensor<1x84xf32>
        
        // FC3: W4A8
        %fc3 = mico.bitlinear(%relu4, @fc3_weight, @fc3_bias) {
            weight_bits = 4, act_bits = 8
        } : (tensor<1x84xf32>) -> tensor<1x10xf32>
        
        return %fc3 : tensor<1x10xf32>
    }
}
