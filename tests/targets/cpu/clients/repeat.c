/* Runs a network of fixed sizes again and again, by several threads at the same time, on Windows:
   each call has what the first had. Between calls workers fall asleep now and then. The library is
   loaded by name, and unloaded: really so only while it has no threads. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "net.h"

enum { CALLERS = 3, RUNS = 150 };

void Sleep(unsigned long);
void *CreateThread(void *, size_t, unsigned long (*)(void *), void *, unsigned long, unsigned long *);
unsigned long WaitForSingleObject(void *, unsigned long);
int GetExitCodeThread(void *, unsigned long *);
void *LoadLibraryA(const char *);
int FreeLibrary(void *);
void *GetModuleHandleA(const char *);
void *GetProcAddress(void *, const char *);

typedef int run(const net_inputs *, net_outputs *, void *, int);

static run *net;

static float x[NET_X_ELEMENTS], y[NET_Y_ELEMENTS];
static float first[NET_OUTPUT0_ELEMENTS];
static unsigned char arenas[CALLERS][NET_ARENA_BYTES + NET_ARENA_ALIGNMENT];
static float outs[CALLERS][NET_OUTPUT0_ELEMENTS], sums[CALLERS][NET_OUTPUT1_ELEMENTS];

static int call(int caller, int threads) {
  const uintptr_t place = (uintptr_t)arenas[caller] + NET_ARENA_ALIGNMENT - 1;
  net_inputs inputs = {x, y};
  net_outputs outputs = {outs[caller], sums[caller]};
  void *arena = (void *)(place & ~(uintptr_t)(NET_ARENA_ALIGNMENT - 1));
  memset(outs[caller], 0, sizeof outs[caller]);
  return net(&inputs, &outputs, arena, threads);
}

static unsigned long repeat(void *given) {
  const int caller = (int)(intptr_t)given;
  int i;
  for (i = 0; i < RUNS; i++) {
    if (call(caller, 1 + i % 4) != NET_OK) return 1;
    if (memcmp(outs[caller], first, sizeof first) != 0) return 2;
    if (i % 25 == caller) Sleep(2);
  }
  return 0;
}

static void *load(void) {
  void *library = LoadLibraryA("net.dll");
  void *found = GetProcAddress(library, "net_run");
  memcpy(&net, &found, sizeof net);
  return library;
}

int main(void) {
  void *threads[CALLERS], *library = load();
  unsigned long failed = 0, code;
  int i;
  for (i = 0; i < NET_X_ELEMENTS; i++) x[i] = (float)(i % 13) - 6, y[i] = (float)(i % 7) - 3;
  if (call(0, 1) != NET_OK) return 90;
  memcpy(first, outs[0], sizeof first);
  FreeLibrary(library);
  if (GetModuleHandleA("net.dll") != NULL) return 92;
  library = load();
  for (i = 0; i < CALLERS; i++) threads[i] = CreateThread(NULL, 0, repeat, (void *)(intptr_t)i, 0, NULL);
  for (i = 0; i < CALLERS; i++) {
    WaitForSingleObject(threads[i], 0xffffffff);
    GetExitCodeThread(threads[i], &code);
    failed |= code;
  }
  FreeLibrary(library);
  if (GetModuleHandleA("net.dll") != library) return 93;
  Sleep(5);
  if (failed == 0 && call(0, 3) != NET_OK) return 91;
  return (int)failed;
}
