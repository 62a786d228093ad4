/* Layers of MiCo's library for the simulator of instructions: one function for each of its tables.
   What the library takes from a C library is here too, as little as layers need. */
#include "nn.h"
#include "mico_nn.h"
#include "mico_qnn.h"

#define ALIGNMENT 32
#define HEAP (1 << 23)
#define FLOATS(name, count) static float name[count]

typedef void (*MatMul)(int32_t *, const Tensor2D_Q8 *, const Tensor2D_Q8 *);

void MiCo_bitlinear_f32(Tensor2D_F32 *, const Tensor2D_F32 *, const Tensor2D_Q8 *,
                        const Tensor1D_F32 *, qtype, qtype, size_t);

/* Sizes are no powers of two, so that arrays do not all begin in one line of a cache. */
FLOATS(x_data, (1 << 18) + 208);
FLOATS(y_data, (1 << 21) + 592);
FLOATS(bias_data, 1 << 12);
static qbyte weight_data[(1 << 21) + 1344];
static qbyte act_data[(1 << 19) + 700];
static int32_t sum_data[(1 << 18) + 304];

static const MatMul matmuls[4][4] = {
    {MiCo_Q1_MatMul, MiCo_Q1x2_MatMul, MiCo_Q1x4_MatMul, MiCo_Q1x8_MatMul},
    {MiCo_Q2x1_MatMul, MiCo_Q2_MatMul, MiCo_Q2x4_MatMul, MiCo_Q2x8_MatMul},
    {MiCo_Q4x1_MatMul, MiCo_Q4x2_MatMul, MiCo_Q4_MatMul, MiCo_Q4x8_MatMul},
    {MiCo_Q8x1_MatMul, MiCo_Q8x2_MatMul, MiCo_Q8x4_MatMul, MiCo_Q8_MatMul},
};

static uint8_t heap[HEAP] __attribute__((aligned(64)));
static size_t taken;

void *malloc(size_t size) {
    void *found = heap + taken;
    taken += (size + 15) / 16 * 16;
    return found;
}

void free(void *pointer) { (void)pointer; }

void *memset(void *to, int value, size_t size) {
    for (uint8_t *byte = to; size--;) *byte++ = (uint8_t)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t size) {
    const uint8_t *source = from;
    for (uint8_t *byte = to; size--;) *byte++ = *source++;
    return to;
}

int printf(const char *format, ...) {
    (void)format;
    return 0;
}

long MiCo_time(void) { return 0; }

void MiCo_assert(const int condition, const char *message) {
    (void)message;
    while (!condition) {
    }
}

long QUANT_TIMER, QMATMUL_TIMER, IM2COL_TIMER;

/* Half away from zero, by the bits of the number, as C libraries for small processors do it. */
float roundf(float x) {
    union {
        float number;
        uint32_t bits;
    } value = {x};
    int exponent = (int)((value.bits >> 23) & 255) - 127;
    if (exponent >= 23) return x;
    if (exponent < 0) {
        value.bits &= 0x80000000u;
        if (exponent == -1) value.bits |= 127u << 23;
        return value.number;
    }
    uint32_t fraction = 0x7fffffu >> exponent;
    if (!(value.bits & fraction)) return x;
    value.bits = (value.bits + (0x400000u >> exponent)) & ~fraction;
    return value.number;
}

void prepare(void) {
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof x_data / sizeof *x_data; i++) {
        state = state * 1664525u + 1013904223u;
        x_data[i] = (float)((int)(state >> 16) - 32768) / 32768.0f;
    }
}

void run_matmul(int rows, int outputs, int inputs, int act_bits, int weight_bits) {
    Tensor2D_Q8 x = {.shape = {rows, inputs}, .data = act_data};
    Tensor2D_Q8 weight = {.shape = {outputs, inputs}, .data = weight_data};
    matmuls[__builtin_ctz(act_bits)][__builtin_ctz(weight_bits)](sum_data, &x, &weight);
}

void run_linear(int rows, int outputs, int inputs, int act_bits, int weight_bits) {
    taken = 0;
    int padded = (inputs + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Tensor2D_F32 x = {.shape = {rows, inputs}, .data = x_data};
    Tensor2D_F32 y = {.shape = {rows, outputs}, .data = y_data};
    Tensor2D_Q8 weight = {.shape = {outputs, padded}, .data = weight_data, .scale = 1.0f};
    Tensor1D_F32 bias = {.shape = {0}, .data = bias_data};
    MiCo_bitlinear_f32(&y, &x, &weight, &bias, weight_bits, act_bits, ALIGNMENT);
}

void run_conv2d(int height, int width, int inputs, int outputs, int kernel, int act_bits,
                int weight_bits) {
    taken = 0;
    Tensor4D_F32 x = {.shape = {1, inputs, height, width}, .data = x_data};
    Tensor4D_F32 y = {.shape = {1, outputs, height - kernel + 1, width - kernel + 1},
                      .data = y_data};
    Tensor4D_Q8 weight = {.shape = {outputs, inputs, kernel, kernel},
                          .data = weight_data,
                          .scale = 1.0f};
    Tensor1D_F32 bias = {.shape = {0}, .data = bias_data};
    MiCo_bitconv2d_f32(&y, &x, &weight, &bias, weight_bits, act_bits, 1, 0, 1, 1, ALIGNMENT);
}

#define POOL(name, function)                                                               \
    void name(int channels, int height, int width, int kernel, int stride) {               \
        int rows = (height - kernel) / stride + 1, columns = (width - kernel) / stride + 1; \
        Tensor4D_F32 x = {.shape = {1, channels, height, width}, .data = x_data};           \
        Tensor4D_F32 y = {.shape = {1, channels, rows, columns}, .data = y_data};           \
        function(&y, &x, kernel, stride, 0);                                               \
    }

POOL(run_avgpool, MiCo_avgpool4d_f32)
POOL(run_maxpool, MiCo_maxpool4d_f32)
