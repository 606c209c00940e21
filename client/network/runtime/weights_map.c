#include "client/network/runtime/weights_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "client/network/runtime/plan_format.h"

static const char* Check(const HoneWeightsHeader* header, uint64_t bytes, const uint8_t id[16]) {
  if (memcmp(header->magic, HONE_WEIGHTS_MAGIC, sizeof header->magic) != 0)
    return "is not a weights file of Hone";
  if (header->version != HONE_WEIGHTS_VERSION) return "has another version of the format";
  if (header->bytes != bytes || memcmp(header->id, id, sizeof header->id) != 0) {
    return "belongs to another export; use the files of one export together";
  }
  return NULL;
}

HoneWeightsStatus hone_weights_map(const char* path, uint64_t bytes, const uint8_t id[16],
                                   const char** address, char* message, size_t message_bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    snprintf(message, message_bytes, "%s: %s", path, strerror(errno));
    return HONE_WEIGHTS_NOT_FOUND;
  }
  const off_t size = lseek(file, 0, SEEK_END);
  if (size < (off_t)sizeof(HoneWeightsHeader)) {
    snprintf(message, message_bytes, "%s is not a weights file of Hone", path);
    close(file);
    return HONE_WEIGHTS_BAD;
  }
  void* const mapped = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  close(file);
  if (mapped == MAP_FAILED) {
    snprintf(message, message_bytes, "%s: %s", path, strerror(error));
    return HONE_WEIGHTS_NOT_FOUND;
  }
  const char* const wrong = Check(mapped, bytes, id);
  if (wrong != NULL) {
    snprintf(message, message_bytes, "%s %s", path, wrong);
  } else if ((uint64_t)size != bytes) {
    snprintf(message, message_bytes, "%s is damaged: it has %lld bytes instead of %llu", path,
             (long long)size, (unsigned long long)bytes);
  } else {
    *address = mapped;
    return HONE_WEIGHTS_OK;
  }
  munmap(mapped, (size_t)size);
  return HONE_WEIGHTS_BAD;
}

int hone_weights_have_id(const char* address, uint64_t bytes, const uint8_t id[16]) {
  const XXH128_hash_t hash =
      XXH3_128bits(address + sizeof(HoneWeightsHeader), bytes - sizeof(HoneWeightsHeader));
  const uint64_t halves[2] = {hash.high64, hash.low64};
  return memcmp(halves, id, sizeof halves) == 0;
}
