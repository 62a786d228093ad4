/* Uses the variants of a library: the one it is told, or all in turn while others are calling.
 *
 *   variants ask              prints the variant that is chosen
 *   variants use NAME         does what ROWS of dynamic.c does, with that variant
 *   variants errors OTHER     what is refused; OTHER is a variant that the processor lacks
 *   variants meet NAME...     runs at the same time as variants are changed
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { ROWS = 6, WIDE = 8, CLASSES = 5, CALLERS = 3, TURNS = 300 };

typedef struct {
  float x[ROWS * WIDE], y[ROWS * WIDE], result[ROWS * CLASSES], sum[ROWS * WIDE];
  unsigned char room[1 << 15];
  int status;
} job;

static job jobs[CALLERS];

static int run(job *its) {
  net_inputs inputs = {its->x, ROWS, its->y, ROWS};
  net_outputs outputs = {its->result, 0, its->sum, 0};
  const size_t size = net_arena_bytes(&inputs);
  if (size + 64 > sizeof its->room) return 100;
  return net_run(&inputs, &outputs, its->room + (64 - (uintptr_t)its->room % 64), 1);
}

static int ask(void) {
  const char *name = net_variant();
  const int status = run(&jobs[0]);
  if (name == NULL) {
    /* Nothing of the library may be executed but this. */
    return status == NET_VARIANT && net_use_variant("auto") == NET_VARIANT ? 0 : 101;
  }
  printf("%s", name);
  return status;
}

static int use(const char *name) {
  const int status = net_use_variant(name);
  if (status != NET_OK) return status;
  if (strcmp(net_variant(), name) != 0) return 102;
  if (fread(jobs[0].x, sizeof jobs[0].x, 1, stdin) != 1) return 103;
  if (fread(jobs[0].y, sizeof jobs[0].y, 1, stdin) != 1) return 104;
  if (run(&jobs[0]) != NET_OK) return 105;
  fwrite(jobs[0].result, sizeof jobs[0].result, 1, stdout);
  fwrite(jobs[0].sum, sizeof jobs[0].sum, 1, stdout);
  return 0;
}

static int errors(const char *other) {
  const char *best = net_variant();
  if (net_use_variant(NULL) != NET_NULL) return 106;
  if (net_use_variant("") != NET_VARIANT) return 107;
  if (net_use_variant("z80") != NET_VARIANT) return 108;
  if (net_use_variant("x86-64-v33") != NET_VARIANT) return 109;
  if (net_use_variant("x86-64-v") != NET_VARIANT) return 110;
  if (other != NULL && net_use_variant(other) != NET_VARIANT) return 111;
  if (net_variant() != best) return 112;
  if (net_use_variant("x86-64-v2") != NET_OK || strcmp(net_variant(), "x86-64-v2") != 0) return 113;
  return net_use_variant("auto") == NET_OK && net_variant() == best ? 0 : 114;
}

static void *work(void *given) {
  job *its = (job *)given;
  int turn;
  for (turn = 0; turn < TURNS && its->status == 0; turn++) its->status = run(its);
  return NULL;
}

static int meet(char **names, int count) {
  pthread_t ids[CALLERS];
  int i, turn;
  for (i = 0; i < CALLERS; i++) {
    for (turn = 0; turn < ROWS * WIDE; turn++) jobs[i].x[turn] = (float)(turn % 7) - 3;
    if (pthread_create(&ids[i], NULL, work, &jobs[i]) != 0) return 115;
  }
  for (turn = 0; turn < TURNS; turn++) {
    if (net_use_variant(names[turn % count]) != NET_OK) return 116;
  }
  for (i = 0; i < CALLERS; i++) pthread_join(ids[i], NULL);
  for (i = 0; i < CALLERS; i++) {
    if (jobs[i].status != 0) return jobs[i].status;
    if (memcmp(jobs[i].result, jobs[0].result, sizeof jobs[0].result) != 0) return 117;
  }
  return 0;
}

int main(int argc, char **argv) {
  if (strcmp(argv[1], "ask") == 0) return ask();
  if (strcmp(argv[1], "use") == 0) return use(argv[2]);
  if (strcmp(argv[1], "errors") == 0) return errors(argc > 2 ? argv[2] : NULL);
  return meet(argv + 2, argc - 2);
}
