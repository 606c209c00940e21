#ifndef HONE_CLIENT_NETWORK_RUNTIME_WEIGHTS_MEMORY_H_
#define HONE_CLIENT_NETWORK_RUNTIME_WEIGHTS_MEMORY_H_

#include <stddef.h>
#include <stdint.h>

#include "client/network/runtime/hone_network.h"

/* Reads a weights file of this size and id into memory with huge pages, where the system has them.
 * Writes what is wrong to `message`. The caller frees `address`. */
hone_network_status hone_weights_read(const char* path, uint64_t bytes, const uint8_t id[16],
                                      const char** address, char* message, size_t message_bytes);

/* Null is allowed. */
void hone_weights_free(const char* address, uint64_t bytes);

/* Whether the content of a file that was read has its id. */
int hone_weights_have_id(const char* address, uint64_t bytes, const uint8_t id[16]);

#endif /* HONE_CLIENT_NETWORK_RUNTIME_WEIGHTS_MEMORY_H_ */
