/* Several threads run the program at once, each with memory of its own, and must agree. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { ROWS = 6, WIDE = 8, CLASSES = 5, CALLERS = 4, TURNS = 200 };

typedef struct {
  float x[ROWS * WIDE], y[ROWS * WIDE], result[ROWS * CLASSES], sum[ROWS * WIDE];
  unsigned char room[1 << 14];
  int threads, status;
} job;

static job jobs[CALLERS];

static void *work(void *given) {
  job *its = (job *)given;
  net_inputs inputs = {its->x, ROWS, its->y, ROWS};
  net_outputs outputs = {its->result, 0, its->sum, 0};
  void *arena = its->room + (64 - (uintptr_t)its->room % 64);
  int turn;
  if (net_arena_bytes(&inputs) + 64 > sizeof its->room) its->status = 100;
  for (turn = 0; turn < TURNS && its->status == 0; turn++)
    its->status = net_run(&inputs, &outputs, arena, its->threads);
  return NULL;
}

int main(void) {
  pthread_t ids[CALLERS];
  int i, j;
  for (i = 0; i < CALLERS; i++) {
    for (j = 0; j < ROWS * WIDE; j++) {
      jobs[i].x[j] = (float)(j % 7) - 3;
      jobs[i].y[j] = (float)(j % 5);
    }
    jobs[i].threads = 1 + i % 2;
    if (pthread_create(&ids[i], NULL, work, &jobs[i]) != 0) return 101;
  }
  for (i = 0; i < CALLERS; i++) pthread_join(ids[i], NULL);
  for (i = 0; i < CALLERS; i++) {
    if (jobs[i].status != 0) return jobs[i].status;
    if (memcmp(jobs[i].result, jobs[0].result, sizeof jobs[0].result) != 0) return 102;
    if (memcmp(jobs[i].sum, jobs[0].sum, sizeof jobs[0].sum) != 0) return 103;
  }
  return 0;
}
