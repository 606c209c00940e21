/* A program around an exported network, which is named residual: runs it as its header says, on one
 * thread, on its own threads and on those of the network, and in several threads at once. Reads the
 * input and the expected outputs from files. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "residual.h"

#define THREADS 4

static char x[RESIDUAL_INPUT_0_BYTES];
static char expected_0[RESIDUAL_OUTPUT_0_BYTES], expected_1[RESIDUAL_OUTPUT_1_BYTES];
static residual* network;

static int read_file(const char* path, void* bytes, size_t size) {
  FILE* const file = fopen(path, "rb");
  const int complete = file != NULL && fread(bytes, 1, size, file) == size;
  if (file != NULL) fclose(file);
  return complete;
}

/* One part for each of the threads, one after the other. */
static void run_parts(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                      void (*body)(void* context, int64_t begin, int64_t end, int64_t thread),
                      void* context) {
  (void)chunk;
  if (threads > runtime->threads) abort();
  for (int32_t t = 0; t < threads; ++t)
    body(context, extent * t / threads, extent * (t + 1) / threads, t);
}

/* Runs an instance of its own several times; returns null, or what is wrong. */
static const char* run(const HoneRuntime* runtime, int misaligned) {
  residual_instance* instance;
  if (residual_new_instance(network, runtime, &instance) != RESIDUAL_OK) return residual_error();
  char* const memory = aligned_alloc(64, (sizeof expected_0 + sizeof expected_1 + 255) / 64 * 64);
  char* const y_0 = memory + misaligned;
  char* const y_1 = memory + (sizeof expected_0 + 127) / 64 * 64 + misaligned;
  const void* const inputs[] = {x};
  void* const outputs[] = {y_0, y_1};
  const char* wrong = NULL;
  for (int round = 0; round < 20 && wrong == NULL; ++round) {
    memset(memory, 0xff, sizeof expected_0 + sizeof expected_1);
    if (residual_run(instance, inputs, outputs) != RESIDUAL_OK) wrong = residual_error();
    if (wrong == NULL && (memcmp(y_0, expected_0, sizeof expected_0) != 0 ||
                          memcmp(y_1, expected_1, sizeof expected_1) != 0)) {
      wrong = "the outputs are wrong";
    }
  }
  free(memory);
  residual_free_instance(instance);
  return wrong;
}

static void* run_in_thread(void* unused) {
  (void)unused;
  return (void*)run(NULL, 0);
}

static int fail(const char* what) {
  printf("%s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 5 || !read_file(argv[2], x, sizeof x) ||
      !read_file(argv[3], expected_0, sizeof expected_0) ||
      !read_file(argv[4], expected_1, sizeof expected_1)) {
    return fail("usage: use_network WEIGHTS INPUT OUTPUT OUTPUT");
  }
  if (residual_open("no such file", &network) != RESIDUAL_NOT_FOUND || network != NULL)
    return fail("it was found");
  if (residual_open(argv[1], &network) != RESIDUAL_OK) return fail(residual_error());
  if (residual_input_count(network) != RESIDUAL_INPUTS ||
      residual_output_count(network) != RESIDUAL_OUTPUTS ||
      strcmp(residual_inputs(network)[0].name, "x") != 0 ||
      strcmp(residual_inputs(network)[0].dtype, "f32") != 0 ||
      residual_inputs(network)[0].rank != 2 ||
      residual_outputs(network)[0].bytes != sizeof expected_0) {
    return fail("the description is wrong");
  }
  const HoneRuntime own = {run_parts, 3}, pool = residual_threads(2);
  const HoneRuntime* const runtimes[] = {NULL, &own, &pool};
  for (int r = 0; r < 3; ++r) {
    for (int misaligned = 0; misaligned <= 4; misaligned += 4) {
      const char* const wrong = run(runtimes[r], misaligned);
      if (wrong != NULL) return fail(wrong);
    }
  }
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; ++t) pthread_create(&threads[t], NULL, run_in_thread, NULL);
  for (int t = 0; t < THREADS; ++t) {
    void* wrong;
    pthread_join(threads[t], &wrong);
    if (wrong != NULL) return fail(wrong);
  }
  residual_instance* instance;
  if (residual_new_instance(network, NULL, &instance) != RESIDUAL_OK) return fail(residual_error());
  const void* const inputs[] = {x};
  void* const same[] = {x, expected_1};
  if (residual_run(instance, inputs, same) != RESIDUAL_INVALID_ARGUMENT ||
      strcmp(residual_error(), "output 0 overlaps input 0") != 0) {
    return fail("overlapping buffers were accepted");
  }
  void* const none[] = {NULL, expected_1};
  if (residual_run(instance, inputs, none) != RESIDUAL_INVALID_ARGUMENT)
    return fail("null was accepted");
  residual_free_instance(instance);
  residual_close(network);
  printf("right\n");
  return 0;
}
