/* What takes the place of threads on systems whose threads the runtime does not know: a call is its
   caller's alone, whatever the number of threads that it may use. */

#include "interface.h"

/* What one thread of a call does: the program's own function. */
void part(void *inputs, void *outputs, void *arena, int64_t thread, int64_t threads)
    NAMED("threads.part");

int32_t run(void *inputs, void *outputs, void *arena, int64_t threads, int64_t sure)
    NAMED("threads.run");
void barrier(void *arrivals, int64_t threads) NAMED("threads.barrier");

int32_t run(void *inputs, void *outputs, void *arena, int64_t threads, int64_t sure) {
  (void)threads, (void)sure;
  part(inputs, outputs, arena, 0, 1);
  return 0;
}

/* All threads of a call are here. */
__attribute__((always_inline)) void barrier(void *arrivals, int64_t threads) {
  (void)arrivals, (void)threads;
}
