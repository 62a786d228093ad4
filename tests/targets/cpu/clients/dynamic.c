/* Runs a program on as many rows as it is told, with just the memory that the program asks for. */
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

enum { WIDE = 8, CLASSES = 5 };

static size_t read_floats(float *to, size_t count) { return fread(to, sizeof *to, count, stdin); }

int main(int argc, char **argv) {
  const size_t rows = (size_t)atoi(argv[1]), count = rows * WIDE;
  const int threads = argc > 2 ? atoi(argv[2]) : 1;
  float *x = (float *)malloc(count * sizeof(float)), *y = (float *)malloc(count * sizeof(float));
  net_inputs inputs;
  net_outputs outputs;
  void *arena;
  int status;
  if (read_floats(x, count) != count || read_floats(y, count) != count) return 100;
  inputs.x = x;
  inputs.x_dim0 = (int64_t)rows;
  inputs.y = y;
  inputs.y_dim0 = (int64_t)rows;
  if ((status = net_shapes(&inputs, &outputs)) != NET_OK) return status;
  if (outputs.output0_dim0 != (int64_t)rows || outputs.output1_dim0 != (int64_t)rows) return 101;
  outputs.output0 = (float *)malloc(rows * CLASSES * sizeof(float));
  outputs.output1 = (float *)malloc(count * sizeof(float));
  /* The arena ends where the allocation does, so a checker sees what is written behind it. */
  if (posix_memalign(&arena, NET_ARENA_ALIGNMENT, net_arena_bytes(&inputs)) != 0) return 102;
  status = net_run(&inputs, &outputs, arena, threads);
  if (status == NET_OK) {
    fwrite(outputs.output0, sizeof(float), rows * CLASSES, stdout);
    fwrite(outputs.output1, sizeof(float), count, stdout);
  }
  free(x);
  free(y);
  free(outputs.output0);
  free(outputs.output1);
  free(arena);
  return status;
}
