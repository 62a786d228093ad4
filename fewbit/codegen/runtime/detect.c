/* Which variants the processor executes, asked of it at run time.

   A feature is a bit of a word. On x86 words are registers of `cpuid`, and the state that the
   system saves for a thread: AVX registers that it does not save are as good as none. On other
   processors the system tells them. A variant fits where all bits are set that it needs. */

#include "variants.h"

#if defined(__x86_64__)

/* Two instructions that generated code has as bytes: LLVM has no intrinsic for `cpuid`, and what we
   carry of it no assembler for other machines than its own. */
void cpuid(uint32_t leaf, uint32_t part, uint32_t registers[4]) NAMED("processor.cpuid");
uint32_t xgetbv(void) NAMED("processor.xgetbv");

enum { EAX, EBX, ECX, EDX };
enum { OSXSAVE = 1u << 27 };

/* Words in the order of detect.py. */
enum { ECX1, ECX_EXTENDED, EBX7, ECX7, EAX7_1, EDX7_1, SAVED, WORDS };

static void read_features(uint64_t words[WORDS]) {
  uint32_t registers[4];
  cpuid(0, 0, registers);
  const bool has7 = registers[EAX] >= 7;
  cpuid(1, 0, registers);
  words[ECX1] = registers[ECX];
  if (has7) {
    cpuid(7, 0, registers);
    words[EBX7] = registers[EBX];
    words[ECX7] = registers[ECX];
    if (registers[EAX] >= 1) {
      cpuid(7, 1, registers);
      words[EAX7_1] = registers[EAX];
      words[EDX7_1] = registers[EDX];
    }
  }
  cpuid(0x80000000, 0, registers);
  if (registers[EAX] > 0x80000000) {
    cpuid(0x80000001, 0, registers);
    words[ECX_EXTENDED] = registers[ECX];
  }
  /* Without OSXSAVE, xgetbv is an instruction that does not exist. */
  if (words[ECX1] & OSXSAVE)
    words[SAVED] = xgetbv();
}

#else

#include <sys/auxv.h>

enum { HWCAP, HWCAP2, WORDS };

static void read_features(uint64_t words[WORDS]) {
  words[HWCAP] = getauxval(AT_HWCAP);
  words[HWCAP2] = getauxval(AT_HWCAP2);
}

#endif

/* The bits that each variant needs. */
extern const uint64_t needs[][WORDS] NAMED("variants.needs");

uint32_t variants_fitting(void) {
  uint64_t words[WORDS] = {0};
  read_features(words);
  uint32_t fitting = 0;
  for (uint32_t i = 0; i < variants_count; i++) {
    uint64_t missing = 0;
    for (uint32_t word = 0; word < WORDS; word++)
      missing |= needs[i][word] & ~words[word];
    fitting |= (uint32_t)(missing == 0) << i;
  }
  return fitting;
}
