/* Decodes tokens with a compiled language model, the likeliest one each time.
 *
 *   decode FOLDER COUNT TOKEN...
 *
 * FOLDER is what was compiled, and TOKEN... the numbers of the prompt's tokens. Nothing is needed
 * but the library, its header, and the file with its weights where there is one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "model.h"

/* Tokens of a prompt that are read at once: the arena is for so many. */
#ifndef PIECE
#define PIECE 128
#endif

enum {
  VOCABULARY = MODEL_OUTPUT0_DIM2,
  CONTEXT = MODEL_B_MODEL_LAYERS_0_SELF_ATTN_VALUES_DIM2,
  THREADS = 1
};

static float logits[VOCABULARY];

static void fail(const char *what) {
  fprintf(stderr, "decode: %s\n", what);
  exit(1);
}

#ifdef MODEL_WEIGHTS_FILE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maps the weights for as long as the process runs. */
static void use_weights(const char *folder) {
  char path[4096];
  struct stat about;
  void *content;
  const int length = snprintf(path, sizeof path, "%s/%s", folder, MODEL_WEIGHTS_FILE);
  const int file = length < (int)sizeof path ? open(path, O_RDONLY) : -1;
  if (file < 0 || fstat(file, &about) != 0) fail("the file of the weights cannot be opened");
  content = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (content == MAP_FAILED) fail("the weights cannot be mapped");
  if (model_use_weights(content, (size_t)about.st_size) != MODEL_OK)
    fail("the weights are of another library");
}
#else
static void use_weights(const char *folder) { (void)folder; }
#endif

static long number(const char *text, long most) {
  char *end;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > most) fail("a number is not possible");
  return value;
}

static int64_t likeliest(void) {
  int64_t i, best = 0;
  for (i = 1; i < VOCABULARY; i++)
    if (logits[i] > logits[best]) best = i;
  return best;
}

int main(int argc, char **argv) {
  static int64_t tokens[CONTEXT + 1];
  int64_t position = 0, left, given = argc - 3, i;
  const int64_t piece = given < PIECE ? given : PIECE;
  model_inputs inputs = {0};
  model_outputs outputs = {0};
  size_t size, step;
  void *arena;
  clock_t start;

  if (given < 1 || given > CONTEXT) fail("give a folder, how many tokens to decode, and a prompt");
  left = number(argv[2], CONTEXT - (long)given);
  for (i = 0; i < given; i++) tokens[i] = number(argv[3 + i], VOCABULARY - 1);
  use_weights(argv[1]);

  /* Keys and values begin as zeros. Input and output are one array, which a run updates in place. */
#define ALLOCATE(input, output, elements)                       \
  outputs.output = calloc((elements), sizeof *outputs.output);  \
  if (outputs.output == NULL) fail("there is too little memory"); \
  inputs.input = outputs.output;
  MODEL_STATE(ALLOCATE)

  inputs.tokens_dim1 = 1;
  step = model_arena_bytes(&inputs);
  inputs.tokens_dim1 = piece;
  size = model_arena_bytes(&inputs);
  if (size < step) size = step;
  size = (size + MODEL_ARENA_ALIGNMENT - 1) / MODEL_ARENA_ALIGNMENT * MODEL_ARENA_ALIGNMENT;
  arena = aligned_alloc(MODEL_ARENA_ALIGNMENT, size);
  if (arena == NULL) fail("there is too little memory");

  /* Runs read the prompt piece by piece, and then each the token that was decoded before. */
  inputs.position = &position;
  outputs.output0 = logits;
  start = clock();
  for (i = left; i > 0;) {
    inputs.tokens = tokens + position;
    inputs.tokens_dim1 = position < given ? given - position : 1;
    if (inputs.tokens_dim1 > piece) inputs.tokens_dim1 = piece;
    if (model_run(&inputs, &outputs, arena, THREADS) != MODEL_OK) fail("a run failed");
    position += inputs.tokens_dim1;
    if (position < given) continue;
    i--;
    tokens[position] = likeliest();
    printf("%lld%c", (long long)tokens[position], i > 0 ? ' ' : '\n');
    fflush(stdout);
  }
  fprintf(stderr, "%.1f ms\n", (double)(clock() - start) * 1e3 / CLOCKS_PER_SEC);

  free(arena);
#define FREE(input, output, elements) free(outputs.output);
  MODEL_STATE(FREE)
  return 0;
}
