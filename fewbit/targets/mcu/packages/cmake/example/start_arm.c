/* How a Cortex-M starts on QEMU's board, and prints by semihosting. A board of yours has its own. */
#include <stddef.h>
#include <stdint.h>

extern uint8_t stack_top[];
extern uint32_t data_from[], data_start[], data_end[], bss_start[], bss_end[];

int main(void);

/* What compilers take for granted, where there is no library of C. */
__attribute__((weak)) void *memcpy(void *to, const void *from, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
  return to;
}

__attribute__((weak)) void *memset(void *to, int byte, size_t count) {
  for (size_t i = 0; i < count; i++)
    ((uint8_t *)to)[i] = (uint8_t)byte;
  return to;
}

static int ask_host(int operation, const void *given) {
  register int r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = given;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void put_text(const char *text) { ask_host(4, text); }

static void leave(uint32_t status) {
  const uint32_t application_exit[] = {0x20026, status};
  ask_host(32, application_exit);
  for (;;)
    ;
}

static void fault(void) { leave(99); }

void reset(void) {
#ifdef __ARM_FP
  *(volatile uint32_t *)0xe000ed88 |= 0xf00000; /* coprocessors 10 and 11: the FPU */
  __asm__ volatile("dsb\n isb");
#endif
  for (uint32_t *to = data_start, *from = data_from; to < data_end; to++, from++)
    *to = *from;
  for (uint32_t *to = bss_start; to < bss_end; to++)
    *to = 0;
  leave(main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, reset, fault, fault, fault, fault, fault, fault,
    fault,     fault, fault, fault, fault, fault, fault, fault,
};
