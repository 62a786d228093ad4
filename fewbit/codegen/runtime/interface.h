/* What the parts of the runtime and the generated code have in common.

   Names have a dot, as no function of C has: the library's own functions are named after the
   program, which may be called anything. */

#ifndef INTERFACE_H
#define INTERFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAMED(name) __asm__(name)

#define MAX_THREADS 64

/* Codes that functions return; interface.py has the whole list. */
enum { ERROR_NULL = 1, ERROR_START = 5, ERROR_VARIANT = 6 };

#endif
