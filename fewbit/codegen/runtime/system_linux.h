/* Linux, and Android, which has the same calls of the kernel. */

#ifndef SYSTEM_LINUX_H
#define SYSTEM_LINUX_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Private futexes, those of one process: FUTEX_WAIT_PRIVATE and FUTEX_WAKE_PRIVATE. */
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

/* Sleep while a word has this value; wakeups may be spurious. Not by a condition variable: a
   library of ours cannot say which version of glibc's it wants, and would get those that allocate. */
static inline void wait_while(_Atomic uint32_t *word, uint32_t value) {
  syscall(SYS_futex, word, (long)FUTEX_WAIT_PRIVATE, (long)value, NULL);
}

static inline void wake_one(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, (long)FUTEX_WAKE_PRIVATE, 1L);
}

static inline void yield_processor(void) { sched_yield(); }

static inline uint32_t process_id(void) { return (uint32_t)getpid(); }

/* A monotonic clock. */
static inline uint64_t nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* How long this thread was executed so far. */
static inline uint64_t executed_nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Have a function called when the library is unloaded or the process exits. Not by the attribute
   `destructor`, for which LLVM as we carry it writes the section of long ago. */
#define AT_END(function)                                                                           \
  static void (*at_end)(void) __attribute__((used, section(".fini_array"))) = function

typedef pthread_t thread_id;
typedef sigset_t signals;

/* Block signals in threads that are started until `restore_signals`, but for those that a thread's
   own instructions raise: the others are for the caller's threads. */
static inline void block_signals(signals *before) {
  static const int raised[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
  /* Bit by bit, as every libc of Linux has them: libraries of ours call few functions. */
  signals mask;
  memset(&mask, 0xff, sizeof mask);
  for (unsigned i = 0; i < sizeof raised / sizeof *raised; i++)
    *(unsigned long *)&mask &= ~(1ul << (raised[i] - 1));
  pthread_sigmask(SIG_SETMASK, &mask, before);
}

static inline void restore_signals(const signals *before) {
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

static inline int start_thread(thread_id *id, void *(*work)(void *), void *given) {
  return pthread_create(id, NULL, work, given);
}

static inline void join_thread(thread_id id) { pthread_join(id, NULL); }

#endif
