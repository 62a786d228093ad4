/* The public functions of a library with variants for several processors: each calls its variant.

   The processor is asked once, when a variant is first needed. What it executes and which variant
   is in use, by its number, best first, are kept in one word; 0 until then. The word is the only
   state. It is read and written atomically and nothing else depends on it, so calls may meet here
   in any order: all find the same variant, or the one that `use_variant` was given. */

#include <stdatomic.h>

#include "interface.h"
#include "variants.h"

#define NUMBER_BITS 8
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)
#define AUTO "auto"

typedef int32_t run_function(const void *, void *, void *, int32_t);
typedef int32_t shapes_function(const void *, void *);
typedef int64_t arena_bytes_function(const void *);
typedef void *profile_function(size_t *);
typedef uint64_t ticks_function(void);

/* What generated code defines: the variants' names and functions, and the size of an arena that is
   enough for all of them, -1 where only they know it. */
extern const char *const names[] NAMED("variants.names");
extern run_function *const runs[] NAMED("variants.run");
extern shapes_function *const shapes[] NAMED("variants.shapes");
extern arena_bytes_function *const arenas[] NAMED("variants.arena_bytes");
extern profile_function *const profiles[] NAMED("variants.profile");
extern ticks_function *const clocks[] NAMED("variants.ticks");
extern const int64_t static_arena NAMED("variants.static_arena");

const char *dispatch_variant(void) NAMED("dispatch.variant");
int32_t dispatch_use_variant(const char *name) NAMED("dispatch.use_variant");
run_function dispatch_run NAMED("dispatch.run");
shapes_function dispatch_shapes NAMED("dispatch.shapes");
arena_bytes_function dispatch_arena_bytes NAMED("dispatch.arena_bytes");
profile_function dispatch_profile NAMED("dispatch.profile");
ticks_function dispatch_ticks NAMED("dispatch.ticks");

/* Which variants fit, in the upper bits, and in the lower ones the number of that in use: 1 is the
   first, 0 says that none fits. */
static _Atomic uint32_t chosen;

static uint32_t best(uint32_t fitting) {
  return fitting == 0 ? 0 : (uint32_t)__builtin_ctz(fitting) + 1;
}

static bool fits(uint32_t state, uint32_t number) {
  return (state >> (number + NUMBER_BITS - 1)) & 1;
}

static uint32_t state(void) {
  uint32_t known = atomic_load_explicit(&chosen, memory_order_relaxed);
  if (known != 0)
    return known;
  const uint32_t fitting = variants_fitting();
  const uint32_t detected = fitting << NUMBER_BITS | best(fitting);
  /* What another thread has chosen meanwhile is kept: it may have been told which. */
  if (atomic_compare_exchange_strong_explicit(&chosen, &known, detected, memory_order_relaxed,
                                              memory_order_relaxed))
    return detected;
  return known;
}

static uint32_t current(void) { return state() & NUMBER_MASK; }

static bool equal(const char *a, const char *b) {
  while (*a == *b) {
    if (*a == 0)
      return true;
    a++, b++;
  }
  return false;
}

/* The number of a name: 0 for the best that fits, one more than there are for others. */
static uint32_t find(const char *name) {
  if (equal(name, AUTO))
    return 0;
  uint32_t number = 1;
  while (number <= variants_count && !equal(name, names[number - 1]))
    number++;
  return number;
}

const char *dispatch_variant(void) {
  const uint32_t number = current();
  return number == 0 ? NULL : names[number - 1];
}

int32_t dispatch_use_variant(const char *name) {
  if (name == NULL)
    return ERROR_NULL;
  uint32_t number = find(name);
  if (number > variants_count)
    return ERROR_VARIANT;
  const uint32_t now = state();
  if (number == 0)
    number = best(now >> NUMBER_BITS);
  if (number == 0 || !fits(now, number))
    return ERROR_VARIANT;
  atomic_store_explicit(&chosen, (now & ~NUMBER_MASK) | number, memory_order_relaxed);
  return 0;
}

int32_t dispatch_run(const void *inputs, void *outputs, void *arena, int32_t threads) {
  const uint32_t number = current();
  return number == 0 ? ERROR_VARIANT : runs[number - 1](inputs, outputs, arena, threads);
}

int32_t dispatch_shapes(const void *inputs, void *outputs) {
  const uint32_t number = current();
  return number == 0 ? ERROR_VARIANT : shapes[number - 1](inputs, outputs);
}

/* Enough for every variant that fits, so that another can be used after memory was taken. */
int64_t dispatch_arena_bytes(const void *inputs) {
  if (static_arena >= 0)
    return static_arena;
  const uint32_t now = state();
  uint64_t most = 0;
  for (uint32_t number = 1; number <= variants_count; number++) {
    if (!fits(now, number))
      continue;
    const uint64_t size = (uint64_t)arenas[number - 1](inputs);
    most = size > most ? size : most;
  }
  return (int64_t)most;
}

void *dispatch_profile(size_t *rows) {
  const uint32_t number = current();
  return number == 0 ? NULL : profiles[number - 1](rows);
}

uint64_t dispatch_ticks(void) {
  const uint32_t number = current();
  return number == 0 ? 0 : clocks[number - 1]();
}
