#ifndef HONE_CLIENT_NETWORK_RUNTIME_WEIGHTS_MAP_H_
#define HONE_CLIENT_NETWORK_RUNTIME_WEIGHTS_MAP_H_

#include <stddef.h>
#include <stdint.h>

typedef enum HoneWeightsStatus {
  HONE_WEIGHTS_OK,
  HONE_WEIGHTS_NOT_FOUND,
  HONE_WEIGHTS_BAD
} HoneWeightsStatus;

/* Maps a weights file of this size and id for reading. Writes what is wrong to `message`. The
 * caller unmaps it. */
HoneWeightsStatus hone_weights_map(const char* path, uint64_t bytes, const uint8_t id[16],
                                   const char** address, char* message, size_t message_bytes);

/* Whether the content of a mapped file has its id. Reads all of it. */
int hone_weights_have_id(const char* address, uint64_t bytes, const uint8_t id[16]);

#endif /* HONE_CLIENT_NETWORK_RUNTIME_WEIGHTS_MAP_H_ */
