/* The workers of a library, from its loading to its unloading: how many there are, and that calls
   are right whatever became of them. Given the library and how many times it is loaded; the exit
   status is 1 where something went wrong, which is told. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net.h"

enum { ROWS = 6, WIDE = 8, CLASSES = 5 };

typedef int run_function(const net_inputs *, net_outputs *, void *, int);

typedef struct {
  float x[ROWS * WIDE], y[ROWS * WIDE], result[ROWS * CLASSES], sum[ROWS * WIDE];
  unsigned char room[1 << 14];
} memory;

static memory mine, others;
static run_function *run;
static float expected[ROWS * CLASSES];
static int stop;

#define CHECK(condition)                                        \
  do {                                                          \
    if (!(condition)) {                                         \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);   \
      exit(1);                                                  \
    }                                                           \
  } while (0)

static void fill(memory *m) {
  int i;
  for (i = 0; i < ROWS * WIDE; i++) {
    m->x[i] = (float)(i % 7) - 3;
    m->y[i] = (float)(i % 5);
  }
}

static int call(memory *m, int threads) {
  net_inputs inputs = {m->x, ROWS, m->y, ROWS};
  net_outputs outputs = {m->result, 0, m->sum, 0};
  memset(m->result, 0, sizeof m->result);
  if (run(&inputs, &outputs, m->room + (64 - (uintptr_t)m->room % 64), threads) != NET_OK) return 0;
  return memcmp(m->result, expected, sizeof expected) == 0;
}

static int tasks(void) {
  int count = 0;
  struct dirent *entry;
  DIR *folder = opendir("/proc/self/task");
  CHECK(folder != NULL);
  while ((entry = readdir(folder)) != NULL) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

static void rest(void) {
  struct timespec two_milliseconds = {0, 2000000};
  nanosleep(&two_milliseconds, NULL);
}

static void *call_on(void *unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) CHECK(call(&others, 3));
  return unused;
}

static void in_a_child(void) {
  int status = 0, turn;
  pid_t child = fork();
  if (child == 0) {
    CHECK(tasks() == 1);
    CHECK(call(&mine, 2) && call(&mine, 4) && call(&mine, 1));
    /* Where the machine is busy, some calls are made alone; others are tried again behind them. */
    for (turn = 0; turn < 500 && tasks() < 4; turn++) CHECK(call(&mine, 4));
    CHECK(tasks() == 4);
    exit(0); /* not _exit: the child's workers end as its parent's do */
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void on_signal(int number) {
  /* Workers leave signals to threads of the caller. */
  CHECK(number == SIGUSR1 && gettid() == getpid());
}

static void use(void) {
  int turn;
  pthread_t thread;
  CHECK(call(&mine, 1) && tasks() == 1);
  CHECK(call(&mine, 3) && tasks() == 3);
  CHECK(call(&mine, 2) && tasks() == 3);
  for (turn = 0; turn < 500; turn++) CHECK(call(&mine, 1 + turn % 4));
  CHECK(tasks() == 4);
  for (turn = 0; turn < 5; turn++) {
    rest();
    CHECK(call(&mine, 2 + turn % 3));
  }
  signal(SIGUSR1, on_signal);
  for (turn = 0; turn < 5; turn++) CHECK(kill(getpid(), SIGUSR1) == 0 && call(&mine, 2));
  in_a_child();
  rest();
  in_a_child();
  __atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
  CHECK(pthread_create(&thread, NULL, call_on, NULL) == 0);
  for (turn = 0; turn < 5; turn++) {
    in_a_child();
    CHECK(call(&mine, 4));
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  CHECK(pthread_join(thread, NULL) == 0 && tasks() == 4);
}

int main(int argc, char **argv) {
  int turn;
  CHECK(argc == 3);
  fill(&mine);
  fill(&others);
  for (turn = 0; turn < atoi(argv[2]); turn++) {
    void *library = dlopen(argv[1], RTLD_NOW);
    CHECK(library != NULL);
    *(void **)&run = dlsym(library, "net_run");
    CHECK(run != NULL);
    call(&mine, 1);
    memcpy(expected, mine.result, sizeof expected);
    if (turn == 0) use();
    CHECK(call(&mine, 3));
    if (turn % 2 == 1) rest();
    CHECK(dlclose(library) == 0);
    CHECK(tasks() == 1);
    CHECK(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
  }
  return 0;
}
