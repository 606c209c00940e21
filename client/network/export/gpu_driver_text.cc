#include "client/network/export/gpu_driver_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/network/export/cuda_driver_text.h"
#include "client/network/export/opencl_driver_text.h"

namespace hone::client {
namespace {

constexpr char kHeaders[] = R"c(#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "@NAME@.h"

)c";

constexpr char kFiles[] =
    R"c(
/* The bytes of a file, which has `bytes` of them; any number if that is -1. A 0 follows. */
static char* read_file(const char* path, int64_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  const int64_t size = ftell(file);
  rewind(file);
  if (bytes >= 0 && size != bytes) {
    fprintf(stderr, "%s has %lld bytes, not %lld\n", path, (long long)size, (long long)bytes);
    exit(1);
  }
  char* content = calloc((size_t)size + 1, 1);
  if (content == NULL || fread(content, 1, (size_t)size, file) != (size_t)size) fail(path, 0);
  fclose(file);
  return content;
}

/* Writes the content of a buffer. */
static void write_file(const char* path, Memory memory, int64_t bytes) {
  char* content = malloc((size_t)bytes);
  if (content == NULL) fail("out of memory", 0);
  read_buffer(memory, bytes, content);
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(content, 1, (size_t)bytes, file) != (size_t)bytes || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
  free(content);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
)c";

}  // namespace

std::string GpuDriverText(target::Kind kind, absl::string_view name, bool parts) {
  const bool cuda = kind == target::Kind::kCuda;
  return absl::StrReplaceAll(
      absl::StrCat(kHeaders, cuda ? kCudaDriverText : kOpenClDriverText,
                   !parts ? "" : (cuda ? kCudaPartsText : kOpenClPartsText), kFiles),
      {{"@NAME@", name}});
}

}  // namespace hone::client
