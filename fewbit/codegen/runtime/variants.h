/* Which variants there are, and which of them the processor executes. */

#ifndef VARIANTS_H
#define VARIANTS_H

#include "interface.h"

extern const uint32_t variants_count NAMED("variants.count");

/* Bit i says whether the processor executes variant i. */
uint32_t variants_fitting(void) NAMED("variants.fitting");

#endif
