/* Runs of a value between the sizes: the samples of inputs and outputs, and their padding. */
#ifndef HONE_CLIENT_NETWORK_RUNTIME_PADDING_H_
#define HONE_CLIENT_NETWORK_RUNTIME_PADDING_H_

#include <stdint.h>

#include "client/network/runtime/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of input or output `end` of the size that has the most. The outputs follow the inputs.
 */
uint64_t hone_most_bytes(const hone_network* network, uint32_t end);

/* Whether the next run uses a copy of this input or output that has the samples of the size. */
int hone_is_padded(const hone_network_instance* instance, uint32_t end);

/* Copies the caller's samples of an input, and fills the rest: with the last sample, so that the
 * copy has only values that the caller gave, because zeros might not be legal indices or divisors;
 * or with what hides the padding if the input is a mask. */
void hone_pad_input(const hone_network_instance* instance, uint32_t input, const char* from,
                    char* to);
/* Copies the samples of an output that the caller wants. */
void hone_unpad_output(const hone_network_instance* instance, uint32_t output, const char* from,
                       char* to);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_CLIENT_NETWORK_RUNTIME_PADDING_H_ */
