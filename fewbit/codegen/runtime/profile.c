/* Where a program's time goes: a table with a row for each call that the program makes. The first
   thread reads the clock before a call and after all threads are done, and adds the difference. */

#include "interface.h"

/* As in the header of a library that is compiled with a profile. */
typedef struct {
  const char *layer, *kernel;
  uint64_t macs, bytes, weight_bytes, calls, ticks, least;
} row;

extern row table[] NAMED("profile.table");
extern const uint64_t table_rows NAMED("profile.rows");

uint64_t profile_now(void) NAMED("profile.now");
void profile_add(uint64_t number, uint64_t start, uint64_t thread) NAMED("profile.add");
row *profile_table(size_t *rows) NAMED("profile.get");
uint64_t profile_ticks(void) NAMED("profile.ticks");

/* The counter that programs may read: elsewhere than on x86 that of cycles is the system's. */
static inline uint64_t read_clock(void) {
#if defined(__x86_64__)
  return __builtin_readcyclecounter();
#else
  return __builtin_readsteadycounter();
#endif
}

__attribute__((always_inline)) uint64_t profile_now(void) { return read_clock(); }

__attribute__((always_inline)) void profile_add(uint64_t number, uint64_t start, uint64_t thread) {
  const uint64_t end = read_clock();
  if (thread != 0)
    return;
  row *entry = &table[number];
  const uint64_t spent = end - start;
  entry->calls++;
  entry->ticks += spent;
  entry->least = spent < entry->least ? spent : entry->least;
}

row *profile_table(size_t *rows) {
  *rows = table_rows;
  return table;
}

uint64_t profile_ticks(void) { return read_clock(); }
