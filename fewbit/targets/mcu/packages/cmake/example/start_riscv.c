/* How a RISC-V core starts on QEMU's machine virt, and prints by its UART. A board of yours has its
   own. */
#include <stddef.h>
#include <stdint.h>

extern uint32_t data_from[], data_start[], data_end[], bss_start[], bss_end[];

int main(void);
void begin(void);

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

__attribute__((naked, used, section(".vectors"))) void _start(void) {
  __asm__ volatile("la sp, stack_top\n"
#ifdef __riscv_flen
                   "li t0, 0x2000\n"
                   "csrs mstatus, t0\n"
#endif
                   "j begin\n");
}

void put_text(const char *text) {
  while (*text != 0)
    *(volatile uint8_t *)0x10000000 = (uint8_t)*text++;
}

void begin(void) {
  for (uint32_t *to = data_start, *from = data_from; to < data_end; to++, from++)
    *to = *from;
  for (uint32_t *to = bss_start; to < bss_end; to++)
    *to = 0;
  const uint32_t status = (uint32_t)main();
  *(volatile uint32_t *)0x100000 = status == 0 ? 0x5555 : status << 16 | 0x3333;
  for (;;)
    ;
}
