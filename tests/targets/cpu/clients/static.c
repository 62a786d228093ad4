/* Runs a program of fixed sizes with memory that is all static: floats in, floats out. */
#include <stdio.h>
#include <stdlib.h>

#include "net.h"

static float x[NET_X_ELEMENTS], y[NET_Y_ELEMENTS];
static float result[NET_OUTPUT0_ELEMENTS], sum[NET_OUTPUT1_ELEMENTS];
static unsigned char room[NET_ARENA_BYTES + NET_ARENA_ALIGNMENT];

int main(int argc, char **argv) {
  net_inputs inputs;
  net_outputs outputs;
  uintptr_t address = (uintptr_t)room;
  void *arena = room + (NET_ARENA_ALIGNMENT - address % NET_ARENA_ALIGNMENT);
  int status;
  if (fread(x, 1, sizeof x, stdin) != sizeof x || fread(y, 1, sizeof y, stdin) != sizeof y)
    return 100;
  inputs.x = x;
  inputs.y = y;
  outputs.output0 = result;
  outputs.output1 = sum;
  if (net_arena_bytes(&inputs) != NET_ARENA_BYTES) return 101;
  status = net_run(&inputs, &outputs, arena, argc > 1 ? atoi(argv[1]) : 1);
  if (status != NET_OK) return status;
  fwrite(result, 1, sizeof result, stdout);
  fwrite(sum, 1, sizeof sum, stdout);
  return 0;
}
