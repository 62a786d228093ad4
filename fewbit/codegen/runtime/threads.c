/* Threads of a library: they start with the first call that wants them, and stay.

   After a call a worker looks out for the next, busily for a while and then asleep. To wake one
   takes much longer than a small program: a call waits only for as many as its caller is sure are
   worth it, and has others where they are awake. A call that comes soon after another wakes all
   that it wants, because more calls will.

   Each worker has a line of memory of its own, in which its caller leaves what to do: nobody else
   is woken, and waiting threads do not disturb one another. The pool belongs to one call at a time.
   A call that meets another in it starts workers of its own, in a pool on its stack, which end with
   it. A forked process has none of its parent's threads: it finds another process's number in the
   pool, and starts anew. Nothing is allocated. */

#include <stdatomic.h>

#include "interface.h"
#include "system.h"

/* Nanoseconds for which a worker looks out for work before it sleeps. */
#define LOOKS_OUT 150000
/* Times that it looks before it gives way to others and looks at the clock. */
#define LOOKS 256
/* Turns of waiting within a call before a thread gives way: the others may have no processor. */
#define PATIENCE 200

/* What the sign of a worker says. */
enum { IDLE, WORK, END, ASLEEP };

typedef struct {
  _Alignas(64) _Atomic uint32_t sign;
  void *inputs, *outputs, *arena;
  int64_t thread, threads;
  thread_id id;
} worker;

typedef struct {
  /* Twice the process, plus one while a call has it. */
  _Alignas(64) _Atomic uint32_t owner;
  int64_t started;
  /* When the last call ended. */
  uint64_t last;
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

/* One turn of waiting for another thread of the same call; how many there have been. */
static uint32_t rest(uint32_t turn) {
  if (turn > PATIENCE) {
    give_way();
    return turn;
  }
  pause_processor();
  return turn + 1;
}

/* Give a worker a sign, and wake it where it sleeps. */
static void give_sign(worker *its, uint32_t sign) {
  if (atomic_exchange_explicit(&its->sign, sign, memory_order_acq_rel) == ASLEEP)
    wake_one(&its->sign);
}

static uint32_t next_sign(worker *its) {
  const uint64_t begin = now();
  for (uint32_t turn = 1;; turn++) {
    const uint32_t sign = atomic_load_explicit(&its->sign, memory_order_acquire);
    if (sign != IDLE)
      return sign;
    pause_processor();
    if (turn % LOOKS != 0)
      continue;
    give_way();
    if (now() - begin > LOOKS_OUT)
      break;
  }
  uint32_t sign = IDLE;
  atomic_compare_exchange_strong_explicit(&its->sign, &sign, ASLEEP, memory_order_acquire,
                                          memory_order_acquire);
  do {
    sleep_while(&its->sign, ASLEEP);
    sign = atomic_load_explicit(&its->sign, memory_order_acquire);
  } while (sign == ASLEEP);
  return sign;
}

/* A worker counts as asleep until it looks out for the first time. */
static void *work(void *given) {
  worker *its = given;
  uint32_t sign = ASLEEP;
  atomic_compare_exchange_strong_explicit(&its->sign, &sign, IDLE, memory_order_relaxed,
                                          memory_order_relaxed);
  while (next_sign(its) != END) {
    part(its->inputs, its->outputs, its->arena, its->thread, its->threads);
    atomic_store_explicit(&its->sign, IDLE, memory_order_release);
  }
  return NULL;
}

/* Whether the pool is ours now: it is, unless another call of this process has it. */
static bool take(void) {
  const uint32_t free = process() << 1, used = free | 1;
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

static void give_back(void) {
  const uint32_t used = atomic_load_explicit(&shared.owner, memory_order_relaxed);
  atomic_store_explicit(&shared.owner, used & ~1u, memory_order_release);
}

/* Starts the workers that are missing; whether all are there then. */
static bool start(pool *in, int64_t threads) {
  if (in->started >= threads - 1)
    return true;
  signals before;
  keep_signals(&before);
  while (in->started < threads - 1) {
    worker *its = &in->workers[in->started + 1];
    atomic_store_explicit(&its->sign, ASLEEP, memory_order_relaxed);
    if (start_thread(&its->id, work, its) != 0)
      break;
    in->started++;
  }
  take_signals(&before);
  return in->started >= threads - 1;
}

static void end(pool *in) {
  for (int64_t i = 1; i <= in->started; i++) {
    give_sign(&in->workers[i], END);
    end_thread(in->workers[i].id);
  }
  in->started = 0;
}

/* Workers end when the library is unloaded or the process exits. Where another thread is in a call
   at that moment, the process is about to end them. */
static void finish(void) {
  if (!take())
    return;
  end(&shared);
  give_back();
}

AT_END(finish);

/* How many threads a call has: those that are sure, and others as far as they are awake; but all
   where it comes soon after another. */
static int64_t choose(pool *in, int64_t threads, int64_t sure) {
  for (int64_t i = sure; i < threads; i++)
    if (atomic_load_explicit(&in->workers[i].sign, memory_order_acquire) == ASLEEP)
      return now() - in->last < LOOKS_OUT ? threads : i;
  return threads;
}

static int32_t run_together(pool *in, void *inputs, void *outputs, void *arena, int64_t threads,
                            int64_t sure) {
  if (!start(in, threads))
    return ERROR_START;
  const int64_t all = choose(in, threads, sure);
  /* Arrivals at barriers are counted in the first word of the arena. */
  *(int64_t *)arena = 0;
  for (int64_t i = 1; i < all; i++) {
    worker *its = &in->workers[i];
    its->inputs = inputs;
    its->outputs = outputs;
    its->arena = arena;
    its->thread = i;
    its->threads = all;
    give_sign(its, WORK);
  }
  part(inputs, outputs, arena, 0, all);
  for (int64_t i = 1; i < all; i++)
    for (uint32_t turn = 0;
         atomic_load_explicit(&in->workers[i].sign, memory_order_acquire) == WORK;)
      turn = rest(turn);
  in->last = now();
  return 0;
}

__attribute__((noinline)) static int32_t run_apart(void *inputs, void *outputs, void *arena,
                                                   int64_t threads) {
  pool own;
  own.started = 0;
  const int32_t code = run_together(&own, inputs, outputs, arena, threads, threads);
  end(&own);
  return code;
}

/* Run with up to so many threads, of which `sure` are worth waiting for. */
int32_t run(void *inputs, void *outputs, void *arena, int64_t threads, int64_t sure) {
  if (threads != 1) {
    if (take()) {
      const int32_t code = run_together(&shared, inputs, outputs, arena, threads, sure);
      give_back();
      return code;
    }
    if (sure != 1)
      return run_apart(inputs, outputs, arena, sure);
  }
  part(inputs, outputs, arena, 0, 1);
  return 0;
}

__attribute__((noinline)) void meet(_Atomic int64_t *arrivals, int64_t threads) {
  const int64_t before = atomic_fetch_add_explicit(arrivals, 1, memory_order_acq_rel);
  const int64_t all = before - (int64_t)((uint64_t)before % (uint64_t)threads) + threads;
  for (uint32_t turn = 0; atomic_load_explicit(arrivals, memory_order_acquire) < all;)
    turn = rest(turn);
}

/* All threads of a call meet here. */
__attribute__((always_inline)) void barrier(_Atomic int64_t *arrivals, int64_t threads) {
  if (threads != 1)
    meet(arrivals, threads);
}
