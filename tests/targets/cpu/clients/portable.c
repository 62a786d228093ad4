/* Runs a network of fixed sizes once, with nothing of any one system. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

#include "net.h"

static unsigned char memory[NET_ARENA_BYTES + NET_ARENA_ALIGNMENT];
static float x[NET_X_ELEMENTS], y[NET_Y_ELEMENTS], out[NET_OUTPUT0_ELEMENTS], sum[NET_OUTPUT1_ELEMENTS];

int main(void) {
  net_inputs inputs = {x, y};
  net_outputs outputs = {out, sum};
  const uintptr_t place = (uintptr_t)memory + NET_ARENA_ALIGNMENT - 1;
  int error;
#ifdef _WIN32
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
#endif
  if (strcmp(net_signature, NET_SIGNATURE) != 0) return 90;
  if (fread(x, sizeof x, 1, stdin) != 1 || fread(y, sizeof y, 1, stdin) != 1) return 91;
  error = net_run(&inputs, &outputs, (void *)(place & ~(uintptr_t)(NET_ARENA_ALIGNMENT - 1)), 2);
  if (error != NET_OK) return error;
  if (fwrite(out, sizeof out, 1, stdout) != 1 || fwrite(sum, sizeof sum, 1, stdout) != 1) return 92;
  return 0;
}
