/* Runs an exported network, which is named mobilenet, on an input file, and writes its output. */
#include <stdio.h>

#include "mobilenet.h"

static float input[MOBILENET_INPUT_0_ELEMENTS], output[MOBILENET_OUTPUT_0_ELEMENTS];

int main(int argc, char** argv) {
  mobilenet* network;
  mobilenet_instance* instance;
  FILE* const from = argc == 4 ? fopen(argv[2], "rb") : NULL;
  FILE* const to = argc == 4 ? fopen(argv[3], "wb") : NULL;
  if (from == NULL || to == NULL || fread(input, sizeof input, 1, from) != 1) {
    puts("usage: use_mobilenet WEIGHTS INPUT OUTPUT");
    return 2;
  }
  const HoneRuntime runtime = mobilenet_threads(2);
  const void* const inputs[] = {input};
  void* const outputs[] = {output};
  if (mobilenet_open(argv[1], &network) != MOBILENET_OK ||
      mobilenet_new_instance(network, &runtime, &instance) != MOBILENET_OK ||
      mobilenet_run(instance, inputs, outputs) != MOBILENET_OK) {
    puts(mobilenet_error());
    return 1;
  }
  mobilenet_free_instance(instance);
  mobilenet_close(network);
  const int written = fwrite(output, sizeof output, 1, to) == 1 && fclose(to) == 0;
  fclose(from);
  return written ? 0 : 1;
}
