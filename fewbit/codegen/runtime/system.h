/* What the runtime wants of a system and of a processor. To bring it to another one, write these
   functions anew. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Futexes that only threads of one process know, by the kernel's header. */
enum { FUTEX_WAIT_HERE = 128, FUTEX_WAKE_HERE = 129 };

/* Tells a processor that nothing but waiting is done; rv64gc has no instruction for that. */
static inline void pause_processor(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __builtin_arm_yield();
#endif
}

/* Sleep as long as a word has this value; it may also be woken for nothing. Not by a condition
   variable: a library of ours cannot say which version of glibc's it wants, and would get those
   that allocate. */
static inline void sleep_while(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, (long)FUTEX_WAIT_HERE, (long)value, NULL);
}

static inline void wake_one(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, (long)FUTEX_WAKE_HERE, 1L);
}

static inline void give_way(void) { sched_yield(); }

static inline uint32_t process(void) { return (uint32_t)getpid(); }

/* Nanoseconds of a clock that is never set. */
static inline uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Have a function called when the library is unloaded or the process exits. Not by the attribute
   `destructor`, for which LLVM as we carry it writes the section of long ago. */
#define AT_END(function)                                                                           \
  static void (*at_end)(void) __attribute__((used, section(".fini_array"))) = function

typedef pthread_t thread_id;
typedef sigset_t signals;

/* Keep signals from threads that are started until `take_signals`, but for those that a thread's
   own instructions raise: the others are for the caller's threads. */
static inline void keep_signals(signals *before) {
  static const int raised[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  /* Bit by bit, as every libc of Linux has them: libraries of ours call few functions. */
  signals mask;
  memset(&mask, 0xff, sizeof mask);
  for (unsigned i = 0; i < sizeof raised / sizeof *raised; i++)
    *(unsigned long *)&mask &= ~(1ul << (raised[i] - 1));
  pthread_sigmask(SIG_SETMASK, &mask, before);
}

static inline void take_signals(const signals *before) {
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

static inline int start_thread(thread_id *id, void *(*work)(void *), void *given) {
  return pthread_create(id, NULL, work, given);
}

static inline void end_thread(thread_id id) { pthread_join(id, NULL); }

#endif
