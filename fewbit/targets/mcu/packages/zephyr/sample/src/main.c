/* Runs @name@ once on made-up inputs, and prints the first bytes of its outputs. */
#include <stdint.h>

#include <zephyr/kernel.h>

#include "@name@.h"

static uint8_t arena[@NAME@_ARENA_BYTES] __aligned(16);
@arrays@

static void print_bytes(const char *name, const void *array, unsigned count)
{
	printk("%s", name);
	for (unsigned i = 0; i < count && i < 64; i++) {
		printk(" %02x", ((const uint8_t *)array)[i]);
	}
	printk("\n");
}

int main(void)
{
@fills@
	const uint32_t start = k_cycle_get_32();

	@name@_run(@arguments@, arena);
	printk("@name@ ran, %u cycles\n", k_cycle_get_32() - start);
@prints@
	return 0;
}
