/* Windows, from 8 on. Its functions are declared here as a library of ours calls them: through the
   tables that the linker makes, without the headers' own ways. */

#ifndef SYSTEM_WINDOWS_H
#define SYSTEM_WINDOWS_H

#include <stddef.h>

typedef void *handle;

int WaitOnAddress(volatile void *address, void *compared, size_t size, uint32_t milliseconds);
void WakeByAddressSingle(void *address);
int SwitchToThread(void);
uint32_t GetCurrentProcessId(void);
int QueryPerformanceCounter(int64_t *count);
int QueryPerformanceFrequency(int64_t *frequency);
int GetModuleHandleExW(uint32_t flags, const void *within, handle *module);
handle CreateThread(void *security, size_t stack, void *(*work)(void *), void *given,
                    uint32_t flags, uint32_t *id);
uint32_t WaitForSingleObject(handle thread, uint32_t milliseconds);
int CloseHandle(handle thread);

enum { FOREVER = 0xffffffffu, PINNED_BY_ADDRESS = 1 | 4 };

/* Sleep while a word has this value; wakeups may be spurious. */
static inline void wait_while(_Atomic uint32_t *word, uint32_t value) {
  WaitOnAddress((volatile void *)word, &value, sizeof value, FOREVER);
}

static inline void wake_one(_Atomic uint32_t *word) { WakeByAddressSingle((void *)word); }

static inline void yield_processor(void) { SwitchToThread(); }

static inline uint32_t process_id(void) { return GetCurrentProcessId(); }

/* A monotonic clock. */
static inline uint64_t nanoseconds(void) {
  int64_t count, frequency;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  const uint64_t ticks = (uint64_t)count, second = (uint64_t)frequency;
  return ticks / second * 1000000000u + ticks % second * 1000000000u / second;
}

/* How long this thread was executed so far: always, since Windows counts it by its clock's ticks,
   which are longer than any call that matters. */
static inline uint64_t executed_nanoseconds(void) { return nanoseconds(); }

/* Nothing is called when the library is unloaded: a thread cannot be waited for then. So a library
   that has started threads is not unloaded before the process ends, which ends them. */
#define AT_END(function) static void (*const at_end)(void) __attribute__((unused)) = function

typedef handle thread_id;
typedef char signals;

/* There are no signals. */
static inline void block_signals(signals *before) { *before = 0; }

static inline void restore_signals(const signals *before) { (void)before; }

static inline int start_thread(thread_id *id, void *(*work)(void *), void *given) {
  handle library;
  GetModuleHandleExW(PINNED_BY_ADDRESS, (const void *)work, &library);
  *id = CreateThread(NULL, 0, work, given, 0, NULL);
  return *id == NULL;
}

static inline void join_thread(thread_id id) {
  WaitForSingleObject(id, FOREVER);
  CloseHandle(id);
}

#endif
