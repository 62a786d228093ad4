/* Classifies an image with a compiled network, and says how long that takes.
 *
 *   client [FILE [THREADS]]
 *
 * FILE has one image as raw 32-bit floats; without it, or for "-", a pattern is made up.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model.h"

enum {
  PIXELS = MODEL_X_DIM1 * MODEL_X_DIM2 * MODEL_X_DIM3,
  CLASSES = MODEL_OUTPUT0_DIM1,
  RUNS = 20
};

static float image[PIXELS], scores[CLASSES];

static int read_image(const char *path) {
  size_t count;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return 0;
  count = fread(image, sizeof *image, PIXELS, file);
  fclose(file);
  return count == PIXELS;
}

static void make_image(void) {
  int i;
  for (i = 0; i < PIXELS; i++) image[i] = (float)(i * 7919L % 1000) / 1000;
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  const int threads = argc > 2 ? atoi(argv[2]) : 1;
  model_inputs inputs = {image, 1};
  model_outputs outputs = {scores, 0};
  size_t size;
  void *arena;
  double best = 1e9;
  int i, top = 0;

  if (argc > 1 && strcmp(argv[1], "-") != 0) {
    if (!read_image(argv[1])) {
      fprintf(stderr, "%s is not a file of %d floats\n", argv[1], PIXELS);
      return 1;
    }
  } else {
    make_image();
  }

  size = model_arena_bytes(&inputs);
  size = (size + MODEL_ARENA_ALIGNMENT - 1) / MODEL_ARENA_ALIGNMENT * MODEL_ARENA_ALIGNMENT;
  arena = aligned_alloc(MODEL_ARENA_ALIGNMENT, size);
  if (arena == NULL) return 1;

  for (i = 0; i < RUNS; i++) {
    const double start = seconds();
    const int error = model_run(&inputs, &outputs, arena, threads);
    const double took = seconds() - start;
    if (error != MODEL_OK) {
      fprintf(stderr, "model_run gives error %d\n", error);
      return 1;
    }
    if (took < best) best = took;
  }
  free(arena);

  for (i = 1; i < CLASSES; i++)
    if (scores[i] > scores[top]) top = i;
  printf("class %d, score %.4f, %.3f ms, arena %zu bytes\n", top, scores[top], best * 1e3, size);
  return 0;
}
