/* Threads of a library: they start with the first call that wants them, and stay.

   After a call a worker spins for a while for the next one, and then sleeps. To wake one takes much
   longer than a small program: a call wakes only as many as its caller is sure are worth it, and
   uses others where they are awake. A call that comes soon after another wakes all that it wants,
   because more calls will.

   Threads wait for one another after every loop nest, so a call is as slow as the thread that gets
   least of a processor: beside a thread of somebody else that spins, two are slower than one. A call
   in which a thread was not executed for long is therefore followed by calls with the caller alone,
   more of them each time that this is found again.

   Each worker has a cache line of its own, in which its caller leaves what to do: nobody else is
   woken, and there is no false sharing. The pool belongs to one call at a time. A call that meets
   another in it starts workers of its own, in a pool on its stack, which end with it. A forked
   process has none of its parent's threads: it finds another process's number in the pool, and
   starts anew. Nothing is allocated. */

#include <stdatomic.h>

#include "interface.h"
#include "system.h"

/* How long a worker spins before it sleeps. */
#define SPIN_NANOSECONDS 150000
/* Spins of an idle worker before it yields and reads the clock. */
#define SPINS_PER_YIELD 256
/* Spins within a call before a thread yields: the others may have no processor. */
#define SPINS_BEFORE_YIELD 200
/* How long a thread's part takes before it is worth asking whether the thread was executed. */
#define LONG_NANOSECONDS 400000
/* The most calls that are made alone before others are tried again. */
#define MOST_ALONE 64

/* States of a worker. */
enum { IDLE, WORK, END, ASLEEP };

/* When a thread was looked at last: what the clock said, and how long it was executed by then. */
typedef struct {
  uint64_t clock, executed;
} look;

typedef struct {
  _Alignas(64) _Atomic uint32_t state;
  void *inputs, *outputs, *arena;
  int64_t thread, threads;
  thread_id id;
  /* How long it was not executed in a part that was long. */
  uint64_t missed;
} worker;

typedef struct {
  /* Twice the process, plus one while a call has it. */
  _Alignas(64) _Atomic uint32_t owner;
  int64_t started;
  /* When the last call ended, and how long it took. */
  uint64_t last, took;
  /* How many of the next calls the caller makes alone, and how many it made so the last time. */
  int64_t alone, alone_before;
  /* By the number of a thread; the caller is the first. */
  worker workers[MAX_THREADS];
} pool;

/* What one thread of a call does: the program's own function. */
void part(void *inputs, void *outputs, void *arena, int64_t thread, int64_t threads)
    NAMED("threads.part");

int32_t run(void *inputs, void *outputs, void *arena, int64_t threads, int64_t sure)
    NAMED("threads.run");
void barrier(_Atomic int64_t *arrivals, int64_t threads) NAMED("threads.barrier");
void meet(_Atomic int64_t *arrivals, int64_t threads) NAMED("threads.meet");

static pool shared;

/* Spin once, or yield after many spins, while waiting for another thread of the same call; returns
   the number of spins. */
static uint32_t wait_a_turn(uint32_t spins) {
  if (spins > SPINS_BEFORE_YIELD) {
    yield_processor();
    return spins;
  }
  pause_processor();
  return spins + 1;
}

/* Set a worker's state, and wake it where it sleeps. */
static void set_state(worker *worker, uint32_t state) {
  if (atomic_exchange_explicit(&worker->state, state, memory_order_acq_rel) == ASLEEP)
    wake_one(&worker->state);
}

static look look_at_clocks(void) { return (look){nanoseconds(), executed_nanoseconds()}; }

/* How long this thread was not executed since it was looked at, by a clock that says `now`. */
static uint64_t missed_since(look before, uint64_t now) {
  const uint64_t passed = now - before.clock, executed = executed_nanoseconds() - before.executed;
  return passed > executed ? passed - executed : 0;
}

static uint32_t await_call(worker *worker) {
  const uint64_t begin = nanoseconds();
  for (uint32_t spins = 1;; spins++) {
    const uint32_t state = atomic_load_explicit(&worker->state, memory_order_acquire);
    if (state != IDLE)
      return state;
    pause_processor();
    if (spins % SPINS_PER_YIELD != 0)
      continue;
    yield_processor();
    if (nanoseconds() - begin > SPIN_NANOSECONDS)
      break;
  }
  uint32_t state = IDLE;
  atomic_compare_exchange_strong_explicit(&worker->state, &state, ASLEEP, memory_order_acquire,
                                          memory_order_acquire);
  do {
    wait_while(&worker->state, ASLEEP);
    state = atomic_load_explicit(&worker->state, memory_order_acquire);
  } while (state == ASLEEP);
  return state;
}

/* A worker counts as asleep until it spins for the first time. */
static void *work(void *given) {
  worker *worker = given;
  uint32_t state = ASLEEP;
  atomic_compare_exchange_strong_explicit(&worker->state, &state, IDLE, memory_order_relaxed,
                                          memory_order_relaxed);
  look before = look_at_clocks();
  while (await_call(worker) != END) {
    const uint64_t begin = nanoseconds();
    if (begin - before.clock > LONG_NANOSECONDS)
      before = look_at_clocks();
    part(worker->inputs, worker->outputs, worker->arena, worker->thread, worker->threads);
    const uint64_t end = nanoseconds();
    worker->missed = end - begin > LONG_NANOSECONDS ? missed_since(before, end) : 0;
    atomic_store_explicit(&worker->state, IDLE, memory_order_release);
  }
  return NULL;
}

/* Acquire the shared pool; false where another call of this process has it. */
static bool acquire_pool(void) {
  const uint32_t free = process_id() << 1, used = free | 1;
  uint32_t owner = atomic_load_explicit(&shared.owner, memory_order_acquire);
  if (owner == used)
    return false;
  const uint32_t before = owner;
  if (!atomic_compare_exchange_strong_explicit(&shared.owner, &owner, used, memory_order_acquire,
                                               memory_order_relaxed))
    return false;
  if (before != free)
    shared.started = 0;
  return true;
}

static void release_pool(void) {
  const uint32_t used = atomic_load_explicit(&shared.owner, memory_order_relaxed);
  atomic_store_explicit(&shared.owner, used & ~1u, memory_order_release);
}

/* Start the workers that are missing; false where some could not be started. */
static bool start_workers(pool *pool, int64_t threads) {
  if (pool->started >= threads - 1)
    return true;
  signals before;
  block_signals(&before);
  while (pool->started < threads - 1) {
    worker *worker = &pool->workers[pool->started + 1];
    atomic_store_explicit(&worker->state, ASLEEP, memory_order_relaxed);
    if (start_thread(&worker->id, work, worker) != 0)
      break;
    pool->started++;
  }
  restore_signals(&before);
  return pool->started >= threads - 1;
}

static void end_workers(pool *pool) {
  for (int64_t i = 1; i <= pool->started; i++) {
    set_state(&pool->workers[i], END);
    join_thread(pool->workers[i].id);
  }
  pool->started = 0;
}

/* Workers end when the library is unloaded or the process exits. Where another thread is in a call
   at that moment, the process is about to end them. */
static void end_at_exit(void) {
  if (!acquire_pool())
    return;
  end_workers(&shared);
  release_pool();
}

AT_END(end_at_exit);

/* How many threads a call has: those that are sure, and others as far as they are awake; but all
   where it comes soon after another. */
static int64_t choose_threads(pool *pool, int64_t threads, int64_t sure) {
  for (int64_t i = sure; i < threads; i++)
    if (atomic_load_explicit(&pool->workers[i].state, memory_order_acquire) == ASLEEP)
      return nanoseconds() - pool->last < SPIN_NANOSECONDS ? threads : i;
  return threads;
}

/* Have the next calls made alone where a thread missed a quarter of this one: twice as many as the
   last time that it did. */
static void note_missed(pool *pool, uint64_t missed) {
  if (missed <= pool->took / 4) {
    pool->alone_before = 0;
    return;
  }
  const int64_t more = 2 * pool->alone_before + 1;
  pool->alone = pool->alone_before = more < MOST_ALONE ? more : MOST_ALONE;
}

static int32_t run_in_pool(pool *pool, void *inputs, void *outputs, void *arena, int64_t threads,
                            int64_t sure) {
  if (!start_workers(pool, threads))
    return ERROR_START;
  const int64_t all = choose_threads(pool, threads, sure);
  const bool is_watched = pool->took > LONG_NANOSECONDS;
  const look before = {nanoseconds(), is_watched ? executed_nanoseconds() : 0};
  /* Arrivals at barriers are counted in the first word of the arena. */
  *(int64_t *)arena = 0;
  for (int64_t i = 1; i < all; i++) {
    worker *worker = &pool->workers[i];
    worker->inputs = inputs;
    worker->outputs = outputs;
    worker->arena = arena;
    worker->thread = i;
    worker->threads = all;
    set_state(worker, WORK);
  }
  part(inputs, outputs, arena, 0, all);
  for (int64_t i = 1; i < all; i++)
    for (uint32_t spins = 0;
         atomic_load_explicit(&pool->workers[i].state, memory_order_acquire) == WORK;)
      spins = wait_a_turn(spins);
  pool->last = nanoseconds();
  pool->took = pool->last - before.clock;
  uint64_t missed = is_watched ? missed_since(before, pool->last) : 0;
  for (int64_t i = 1; i < all; i++)
    if (pool->workers[i].missed > missed)
      missed = pool->workers[i].missed;
  note_missed(pool, missed);
  return 0;
}

static void run_alone(pool *pool, void *inputs, void *outputs, void *arena) {
  pool->alone--;
  part(inputs, outputs, arena, 0, 1);
  pool->last = nanoseconds();
}

__attribute__((noinline)) static int32_t run_in_own_pool(void *inputs, void *outputs,
                                                         void *arena, int64_t threads) {
  pool own;
  own.started = 0;
  own.last = own.took = 0;
  own.alone = own.alone_before = 0;
  const int32_t code = run_in_pool(&own, inputs, outputs, arena, threads, threads);
  end_workers(&own);
  return code;
}

/* Run with up to so many threads, of which `sure` are worth waiting for. */
int32_t run(void *inputs, void *outputs, void *arena, int64_t threads, int64_t sure) {
  if (threads != 1) {
    if (acquire_pool()) {
      int32_t code = 0;
      if (shared.alone > 0)
        run_alone(&shared, inputs, outputs, arena);
      else
        code = run_in_pool(&shared, inputs, outputs, arena, threads, sure);
      release_pool();
      return code;
    }
    if (sure != 1)
      return run_in_own_pool(inputs, outputs, arena, sure);
  }
  part(inputs, outputs, arena, 0, 1);
  return 0;
}

__attribute__((noinline)) void meet(_Atomic int64_t *arrivals, int64_t threads) {
  const int64_t before = atomic_fetch_add_explicit(arrivals, 1, memory_order_acq_rel);
  const int64_t all = before - (int64_t)((uint64_t)before % (uint64_t)threads) + threads;
  for (uint32_t spins = 0; atomic_load_explicit(arrivals, memory_order_acquire) < all;)
    spins = wait_a_turn(spins);
}

/* All threads of a call meet here. */
__attribute__((always_inline)) void barrier(_Atomic int64_t *arrivals, int64_t threads) {
  if (threads != 1)
    meet(arrivals, threads);
}
