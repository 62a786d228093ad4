/* Runs a program that cuts columns off, twice: what it wrote to a size must not last. */
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

int main(int argc, char **argv) {
  const size_t columns = (size_t)atoi(argv[1]);
  const int threads = argc > 2 ? atoi(argv[2]) : 1;
  float *x = (float *)malloc(2 * columns * sizeof(float));
  int64_t wanted;
  net_inputs inputs;
  net_outputs outputs;
  void *arena;
  int status, call;
  if (fread(x, sizeof *x, 2 * columns, stdin) != 2 * columns) return 100;
  if (fread(&wanted, sizeof wanted, 1, stdin) != 1) return 100;
  inputs.x = x;
  inputs.x_dim1 = (int64_t)columns;
  inputs.count = &wanted;
  if ((status = net_shapes(&inputs, &outputs)) != NET_OK) return status;
  if (outputs.output0_dim1 != (int64_t)columns) return 101;
  outputs.output0 = (float *)malloc(2 * columns * sizeof(float));
  if (posix_memalign(&arena, NET_ARENA_ALIGNMENT, net_arena_bytes(&inputs)) != 0) return 102;
  for (call = 0; call < 2 && status == NET_OK; call++)
    status = net_run(&inputs, &outputs, arena, threads);
  if (status == NET_OK)
    fwrite(outputs.output0, sizeof(float), 2 * (size_t)outputs.output0_dim1, stdout);
  free(x);
  free(outputs.output0);
  free(arena);
  return status;
}
