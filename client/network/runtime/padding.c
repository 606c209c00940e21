#include "client/network/runtime/padding.h"

#include <string.h>

/* The samples of an input or output that grows with the size. A tensor with dimensions before the
 * open one has several blocks of samples, and an empty tensor has none. */
typedef struct Samples {
  uint64_t blocks;
  uint64_t bytes; /* of a sample */
  uint64_t given; /* in the caller's buffer, per block */
  uint64_t all;   /* in the padded copy */
} Samples;

static const HonePlanTensor* EndOf(const hone_network* network, uint32_t part, uint32_t end) {
  const uint32_t inputs = network->plan.header->inputs;
  return end < inputs ? hone_input_of(network, part, end)
                      : hone_output_of(network, part, end - inputs);
}

static int32_t AxisOf(const hone_network* network, uint32_t end) {
  const uint32_t inputs = network->plan.header->inputs;
  return end < inputs ? network->inputs[end].open_axis : network->outputs[end - inputs].open_axis;
}

uint64_t hone_most_bytes(const hone_network* network, uint32_t end) {
  uint64_t most = 0;
  for (uint32_t p = 0; p <= hone_last_part(network); ++p) {
    const uint64_t bytes = EndOf(network, p, end)->bytes;
    if (bytes > most) most = bytes;
  }
  return most;
}

int hone_is_padded(const hone_network_instance* instance, uint32_t end) {
  return instance->value != 0 && AxisOf(instance->network, end) >= 0;
}

static Samples SamplesOf(const hone_network_instance* instance, uint32_t end) {
  const HonePlanTensor* const tensor = EndOf(instance->network, instance->part, end);
  const int32_t axis = AxisOf(instance->network, end);
  const uint64_t size = (uint64_t)instance->network->plan.sizes[instance->part].value;
  Samples samples = {tensor->bytes > 0, 0, (uint64_t)instance->value, size};
  if (samples.blocks == 0) return samples;
  for (int32_t d = 0; d < axis; ++d) samples.blocks *= (uint64_t)tensor->shape[d];
  samples.bytes = tensor->bytes / samples.blocks / size;
  return samples;
}

void hone_pad_input(const hone_network_instance* instance, uint32_t input, const char* from,
                    char* to) {
  const HonePlanMask* const mask = hone_plan_mask(&instance->network->plan, instance->part, input);
  const Samples samples = SamplesOf(instance, input);
  for (uint64_t b = 0; b < samples.blocks; ++b) {
    memcpy(to, from, samples.given * samples.bytes);
    from += samples.given * samples.bytes;
    to += samples.given * samples.bytes;
    for (uint64_t s = samples.given; s < samples.all; ++s, to += samples.bytes) {
      if (mask == NULL) {
        memcpy(to, from - samples.bytes, samples.bytes);
        continue;
      }
      for (uint64_t e = 0; e < samples.bytes; e += mask->element_bytes)
        memcpy(to + e, mask->hides, mask->element_bytes);
    }
  }
}

void hone_unpad_output(const hone_network_instance* instance, uint32_t output, const char* from,
                       char* to) {
  const Samples samples = SamplesOf(instance, instance->network->plan.header->inputs + output);
  for (uint64_t b = 0; b < samples.blocks; ++b) {
    memcpy(to, from, samples.given * samples.bytes);
    to += samples.given * samples.bytes;
    from += samples.all * samples.bytes;
  }
}
