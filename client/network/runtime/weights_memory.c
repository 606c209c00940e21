#include "client/network/runtime/weights_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "client/network/runtime/plan_format.h"

static const uint64_t kHugePage = 2 << 20;

static uint64_t RoundUp(uint64_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

/* Memory that begins at a huge page and ends with one. NULL if there is too little. */
static char* Allocate(uint64_t bytes) {
  const uint64_t wanted = RoundUp(bytes);
  if ((size_t)(wanted + kHugePage) != wanted + kHugePage) return NULL; /* 32-bit addresses */
  char* const mapped =
      mmap(NULL, wanted + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
  const uint64_t before = RoundUp((uintptr_t)mapped) - (uintptr_t)mapped;
  char* const address = mapped + before;
  if (before > 0) munmap(mapped, before);
  if (before < kHugePage) munmap(address + wanted, kHugePage - before);
  madvise(address, wanted, MADV_HUGEPAGE); /* if the system has such pages */
  return address;
}

/* Returns the number of bytes read, fewer at the end of the file, or -1. */
static int64_t ReadAll(int file, char* to, uint64_t bytes) {
  const uint64_t most = 1 << 30; /* Linux reads less than 2 GiB at once */
  uint64_t done = 0;
  while (done < bytes) {
    const uint64_t left = bytes - done;
    const ssize_t got = read(file, to + done, left < most ? left : most);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (uint64_t)got;
  }
  return (int64_t)done;
}

__attribute__((format(printf, 4, 5))) static hone_network_status Fail(hone_network_status status,
                                                                      char* message,
                                                                      size_t message_bytes,
                                                                      const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, message_bytes, format, arguments);
  va_end(arguments);
  return status;
}

/* Compares the header of an open file and reads the file. */
static hone_network_status ReadFile(int file, const char* path, uint64_t bytes,
                                    const uint8_t id[16], const char** address, char* message,
                                    size_t message_bytes) {
  HoneWeightsHeader header;
  const int64_t got = ReadAll(file, (char*)&header, sizeof header);
  if (got < 0)
    return Fail(HONE_NETWORK_NOT_FOUND, message, message_bytes, "%s: %s", path, strerror(errno));
  if (got < (int64_t)sizeof header ||
      memcmp(header.magic, HONE_WEIGHTS_MAGIC, sizeof header.magic) != 0) {
    return Fail(HONE_NETWORK_BAD_FILE, message, message_bytes, "%s is not a weights file of Hone",
                path);
  }
  if (header.version != HONE_WEIGHTS_VERSION) {
    return Fail(HONE_NETWORK_BAD_FILE, message, message_bytes,
                "%s has another version of the format", path);
  }
  if (header.bytes != bytes || memcmp(header.id, id, sizeof header.id) != 0) {
    return Fail(HONE_NETWORK_BAD_FILE, message, message_bytes,
                "%s belongs to another export; use the files of one export together", path);
  }
  const off_t size = lseek(file, 0, SEEK_END);
  if (size < 0 || (uint64_t)size != bytes || lseek(file, 0, SEEK_SET) != 0) {
    return Fail(HONE_NETWORK_BAD_FILE, message, message_bytes,
                "%s is damaged: it has %lld bytes instead of %llu", path, (long long)size,
                (unsigned long long)bytes);
  }
  char* const memory = Allocate(bytes);
  if (memory == NULL) {
    return Fail(HONE_NETWORK_OUT_OF_MEMORY, message, message_bytes,
                "out of memory for weights of %llu bytes", (unsigned long long)bytes);
  }
  const int64_t read_bytes = ReadAll(file, memory, bytes);
  if (read_bytes == (int64_t)bytes) {
    mprotect(memory, RoundUp(bytes), PROT_READ);
    *address = memory;
    return HONE_NETWORK_OK;
  }
  const int error = errno;
  hone_weights_free(memory, bytes);
  if (read_bytes < 0)
    return Fail(HONE_NETWORK_NOT_FOUND, message, message_bytes, "%s: %s", path, strerror(error));
  return Fail(HONE_NETWORK_BAD_FILE, message, message_bytes, "%s became shorter while it was read",
              path);
}

hone_network_status hone_weights_read(const char* path, uint64_t bytes, const uint8_t id[16],
                                      const char** address, char* message, size_t message_bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return Fail(HONE_NETWORK_NOT_FOUND, message, message_bytes, "%s: %s", path, strerror(errno));
  const hone_network_status status =
      ReadFile(file, path, bytes, id, address, message, message_bytes);
  close(file);
  return status;
}

void hone_weights_free(const char* address, uint64_t bytes) {
  if (address != NULL) munmap((void*)address, RoundUp(bytes));
}

int hone_weights_have_id(const char* address, uint64_t bytes, const uint8_t id[16]) {
  const XXH128_hash_t hash =
      XXH3_128bits(address + sizeof(HoneWeightsHeader), bytes - sizeof(HoneWeightsHeader));
  const uint64_t halves[2] = {hash.high64, hash.low64};
  return memcmp(halves, id, sizeof halves) == 0;
}
