"""The C header of a compiled program, for C and C++."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fewbit.codegen.interface import ERRORS, MAX_THREADS, Interface, Port
from fewbit.toolchain.system import LINUX, WINDOWS, System

TEMPLATE = """\
/* {description}
 *
 * All memory is the caller's: inputs, outputs, and one arena for what lies between. Nothing is
 * allocated, and no state is kept from one call to the next, so calls may run at the same time
 * as long as each has an arena and outputs of its own.{state}{updates}{counted}
 */
#ifndef {upper}_H
#define {upper}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* What functions return. */
enum {{
{errors}
}};

{constants}
{list}
/* Equal to {upper}_SIGNATURE in the library that belongs to this header. */
extern {imported}const char {name}_signature[{signature_bytes}];

{inputs}

{outputs}

/* How many bytes of arena a run needs, for inputs of these dimensions; 0 where they do not fit.
 * Pointers to elements are not used.
 */
size_t {name}_arena_bytes(const {name}_inputs *inputs);

/* Fills in the dimensions of outputs that depend on those of inputs. Pointers to elements are not
 * used.
 */
int {name}_shapes(const {name}_inputs *inputs, {name}_outputs *outputs);

/* Computes the outputs. The results have the same bits whatever the number of threads is.{alone} */
int {name}_run(const {name}_inputs *inputs, {name}_outputs *outputs, void *arena,
    int threads);
{weights}{profile}{variants}
#ifdef __cplusplus
}}
#endif

#endif
"""

PROFILE = """
/* This library counts where its time goes: the table is the only state that it keeps, so counts are
 * right where calls do not run at the same time. There is a row for each loop nest and kernel that
 * a run calls, in their order. Amounts are of one call, 0 where sizes are known at run time only.
 */
typedef struct {name}_profile_row {{
  const char *layer;
  const char *kernel; /* "loop" for a loop nest */
  uint64_t macs;
  uint64_t bytes; /* of arrays that are read or written, weights among them */
  uint64_t weight_bytes;
  uint64_t calls;
  uint64_t ticks; /* of the first thread, until all threads were done; of all calls */
  uint64_t least; /* ticks of the fastest call; UINT64_MAX before the first */
}} {name}_profile_row;

/* The table, and how many rows it has. To count anew, set calls and ticks to 0, and least to
 * UINT64_MAX.
 */
{name}_profile_row *{name}_profile(size_t *rows);

/* The clock that ticks are counted by, now. */
uint64_t {name}_ticks(void);
"""

WEIGHTS = """
/* The weights are in the file {file}, which belongs to this library alone. Give its content, as it
 * is mapped or read to an address that is a multiple of 64, before the first run: it must then stay
 * where it is, as long as there are runs.
 */
int {name}_use_weights(const void *content, size_t bytes);
"""

UPDATES = """
/* Calls X(input, output, elements) for each input whose new value is an output. */
#define {upper}_STATE(X) \\
{pairs}
"""

ALONE = """
 * On {title}, the caller's thread computes alone."""

COUNTED = """
 *
 * The data decides on these dimensions, so only a run knows them. {name}_shapes fills in the most
 * that each can be, for which the output must have memory. {name}_run fills in what it is; the
 * elements lie at the start of that memory, without gaps:
{dimensions}"""

STATE = """ The one exception is {what}."""

VARIANTS = """
/* The code is here for several processors, best first:
 * {names}
 * The best that this one executes is chosen at the first call. Where it executes none, functions
 * return {upper}_VARIANT, and {name}_arena_bytes, where it depends on shapes, 0.
 */

/* The variant in use; NULL where the processor executes none. */
const char *{name}_variant(void);

/* Use this variant in all calls from now on; "auto" is the best again. A call that has begun is not
 * changed. An arena is large enough for all variants, whichever is in use.
 */
int {name}_use_variant(const char *name);
"""


def header_text(
    interface: Interface,
    arena: int | None,
    description: str,
    signature: str,
    variants: Sequence[str] = (),
    weights_file: str = "",
    system: System = LINUX,
) -> str:
    """Return the header; `arena` is the size in bytes, None where it depends on shapes.

    `weights_file` is the name of the file beside the library, where weights are in one.
    """
    upper = interface.name.upper()
    return TEMPLATE.format(
        imported="__declspec(dllimport) " if system is WINDOWS else "",
        alone="" if system.has_threads else ALONE.format(title=system.title),
        description=description.replace("*/", "* /"),
        upper=upper,
        name=interface.name,
        errors="\n".join(_errors(upper)),
        constants="\n".join(_constants(interface, upper, arena, signature, weights_file)),
        signature_bytes=len(signature) + 1,
        inputs="\n".join(_struct(f"{interface.name}_inputs", interface.inputs, "const ")),
        outputs="\n".join(_struct(f"{interface.name}_outputs", interface.outputs)),
        weights=WEIGHTS.format(name=interface.name, file=weights_file) if weights_file else "",
        profile=PROFILE.format(name=interface.name) if interface.profile else "",
        state=_state(bool(weights_file), bool(variants)),
        updates=_updates(interface),
        list=_list_updates(interface, upper),
        counted=_counted(interface),
        variants=VARIANTS.format(name=interface.name, upper=upper, names=", ".join(variants))
        if variants
        else "",
    )


def _state(beside: bool, variants: bool) -> str:
    """Return what the library keeps from call to call."""
    kept = ["where\n * the weights are"] if beside else []
    kept += ["which\n * variant of the code is in use"] if variants else []
    return STATE.format(what=", and ".join(kept)) if kept else ""


def _updates(interface: Interface) -> str:
    """Return which outputs are new values of which inputs."""
    pairs = [f" *   {p.name} of {p.updates}" for p in interface.outputs if p.updates is not None]
    if not pairs:
        return ""
    return "\n" + "\n".join(
        (" *", " * Outputs that are new values of inputs, and may be the same array:", *pairs)
    )


def _list_updates(interface: Interface, upper: str) -> str:
    """Return the same as a macro, for programs that take models with any number of layers."""
    pairs = [
        f"  X({port.updates}, {port.name}, {port.elements})"
        for port in interface.outputs
        if port.updates is not None and port.elements is not None
    ]
    return UPDATES.format(upper=upper, pairs=" \\\n".join(pairs)) if pairs else ""


def _counted(interface: Interface) -> str:
    """Return which dimensions only a run knows."""
    if not interface.counted:
        return ""
    dimensions = "\n".join(f" *   {field}" for field in interface.counted_dimensions)
    return COUNTED.format(name=interface.name, dimensions=dimensions)


def _errors(prefix: str) -> Iterator[str]:
    for number, (error, meaning) in enumerate(ERRORS):
        comma = "," if number + 1 < len(ERRORS) else ""
        yield f"  {prefix}_{error} = {number}{comma} /* {meaning} */"


def _constants(
    interface: Interface, prefix: str, arena: int | None, signature: str, weights_file: str
) -> Iterator[str]:
    yield f'#define {prefix}_SIGNATURE "{signature}"'
    yield f"#define {prefix}_MAX_THREADS {MAX_THREADS}"
    yield f"#define {prefix}_ARENA_ALIGNMENT 64"
    if arena is not None:
        yield f"#define {prefix}_ARENA_BYTES {arena}"
    if weights_file:
        yield f'#define {prefix}_WEIGHTS_FILE "{weights_file}"'
    for port in (*interface.inputs, *interface.outputs):
        name = f"{prefix}_{port.name.upper()}"
        if port.elements is not None:
            yield f"#define {name}_ELEMENTS {port.elements}"
        for i, size in enumerate(port.shape):
            if size is not None:
                yield f"#define {name}_DIM{i} {size}"


def _struct(name: str, ports: Sequence[Port], const: str = "") -> Iterator[str]:
    yield f"typedef struct {name} {{"
    for port in ports:
        sizes = [f"{port.name}_dim{i}" if s is None else str(s) for i, s in enumerate(port.shape)]
        what = f"{' x '.join(sizes) or 'one'} of {port.element}"
        yield f"  {const}{port.c_type} *{port.name}; /* {what} */"
        for dimension in port.dimensions:
            yield f"  int64_t {dimension};"
    if not ports:
        yield "  void *unused;"
    yield f"}} {name};"
