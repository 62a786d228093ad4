// Runs @name@ on made-up inputs once a second, and prints how long that takes and what comes out.
#include <@name@.h>

static uint8_t arena[@NAME@_ARENA_BYTES] __attribute__((aligned(16)));
@arrays@

static void print_bytes(const char *name, const void *array, unsigned count) {
  Serial.print(name);
  for (unsigned i = 0; i < count && i < 64; i++) {
    Serial.print(' ');
    Serial.print(((const uint8_t *)array)[i], HEX);
  }
  Serial.println();
}

void setup() { Serial.begin(115200); }

void loop() {
@fills@
  const unsigned long start = micros();
  @name@_run(@arguments@, arena);
  Serial.print(micros() - start);
  Serial.println(" us");
@prints@
  delay(1000);
}
