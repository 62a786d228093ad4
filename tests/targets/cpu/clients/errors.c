/* Provokes every error that the header names; the exit status is the line that went wrong. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "net.h"

enum { ROWS = 6, WIDE = 8, CLASSES = 5 };
static float x[ROWS * WIDE + 1], y[ROWS * WIDE], result[ROWS * CLASSES], sum[ROWS * WIDE];
static unsigned char room[1 << 16];

static const net_inputs good_inputs = {x, ROWS, y, ROWS};
static const net_outputs good_outputs = {result, 0, sum, 0};

#define EXPECT(code, call)                                              \
  do {                                                                  \
    int found;                                                          \
    inputs = good_inputs;                                               \
    outputs = good_outputs;                                             \
    found = (call);                                                     \
    if (found != (code)) {                                              \
      fprintf(stderr, "line %d gives %d\n", __LINE__, found);           \
      return 1;                                                         \
    }                                                                   \
  } while (0)

/* Room for the stacks of two threads more, not of sixty. */
static int leave_little_memory(void) {
  struct rlimit limit;
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) return 0;
  fclose(file);
  if (getrlimit(RLIMIT_AS, &limit) != 0) return 0;
  limit.rlim_cur = pages * 4096 + (20UL << 20);
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

int main(int argc, char **argv) {
  net_inputs inputs;
  net_outputs outputs;
  unsigned char *arena = room + (64 - (uintptr_t)room % 64);
  void *off = (char *)x + 1;

  if (argc > 1 && strcmp(argv[1], "start") == 0) {
    if (!leave_little_memory()) return 2;
    EXPECT(NET_START, net_run(&inputs, &outputs, arena, NET_MAX_THREADS));
    EXPECT(NET_OK, net_run(&inputs, &outputs, arena, 1));
    EXPECT(NET_OK, net_run(&inputs, &outputs, arena, 2));
    return 0;
  }

  EXPECT(NET_OK, net_run(&inputs, &outputs, arena, 1));
  EXPECT(NET_OK, net_run(&inputs, &outputs, arena, 3));
  EXPECT(NET_OK, net_run(&inputs, &outputs, arena, NET_MAX_THREADS));

  EXPECT(NET_NULL, net_run(NULL, &outputs, arena, 1));
  EXPECT(NET_NULL, net_run(&inputs, NULL, arena, 1));
  EXPECT(NET_NULL, net_run(&inputs, &outputs, NULL, 1));
  EXPECT(NET_NULL, (inputs.x = NULL, net_run(&inputs, &outputs, arena, 1)));
  EXPECT(NET_NULL, (inputs.y = NULL, net_run(&inputs, &outputs, arena, 1)));
  EXPECT(NET_NULL, (outputs.output1 = NULL, net_run(&inputs, &outputs, arena, 1)));
  EXPECT(NET_NULL, net_shapes(NULL, &outputs));
  EXPECT(NET_NULL, net_shapes(&inputs, NULL));

  EXPECT(NET_SHAPE, (inputs.x_dim0 = -1, net_run(&inputs, &outputs, arena, 1)));
  EXPECT(NET_SHAPE, (inputs.x_dim0 = ROWS - 1, net_run(&inputs, &outputs, arena, 1)));
  EXPECT(NET_SHAPE, (inputs.x_dim0 = INT64_MIN, net_shapes(&inputs, &outputs)));
  EXPECT(NET_SHAPE, (inputs.y_dim0 = INT64_MAX, net_shapes(&inputs, &outputs)));
  EXPECT(0, (inputs.x_dim0 = -1, (int)net_arena_bytes(&inputs)));
  EXPECT(0, (inputs.x_dim0 = ROWS - 1, (int)net_arena_bytes(&inputs)));
  EXPECT(0, (int)net_arena_bytes(NULL));

  EXPECT(NET_THREADS, net_run(&inputs, &outputs, arena, 0));
  EXPECT(NET_THREADS, net_run(&inputs, &outputs, arena, -1));
  EXPECT(NET_THREADS, net_run(&inputs, &outputs, arena, NET_MAX_THREADS + 1));

  EXPECT(NET_ALIGNMENT, net_run(&inputs, &outputs, arena + 16, 1));
  EXPECT(NET_ALIGNMENT, (inputs.x = (float *)off, net_run(&inputs, &outputs, arena, 1)));
  EXPECT(NET_ALIGNMENT, (outputs.output0 = (float *)off, net_run(&inputs, &outputs, arena, 1)));
  return 0;
}
