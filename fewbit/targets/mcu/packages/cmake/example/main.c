/* Runs @name@ once on made-up inputs, and prints its outputs as the bytes that they are. */
#include <stdint.h>

#include "@name@.h"

void put_text(const char *text);

static uint8_t arena[@NAME@_ARENA_BYTES] __attribute__((aligned(16)));
@arrays@

static void print_bytes(const char *name, const void *array, unsigned count) {
  static const char digits[] = "0123456789abcdef";
  char pair[3] = {0};
  put_text(name);
  put_text(" ");
  for (unsigned i = 0; i < count; i++) {
    const uint8_t byte = ((const uint8_t *)array)[i];
    pair[0] = digits[byte >> 4];
    pair[1] = digits[byte & 15];
    put_text(pair);
  }
  put_text("\n");
}

int main(void) {
@fills@
  @name@_run(@arguments@, arena);
@prints@
  return 0;
}
