/* What the runtime needs of an operating system and of a processor: to port it, write these
   functions. */

#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdint.h>

/* The hint that a thread spins; rv64gc has no instruction for it. */
static inline void pause_processor(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __builtin_arm_yield();
#endif
}

#if defined(_WIN32)
#include "system_windows.h"
#else
#include "system_linux.h"
#endif

#endif
