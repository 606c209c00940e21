/* What hone_network.c shares with the backends: cpu_backend.c and gpu_backend.c. */
#ifndef HONE_CLIENT_NETWORK_RUNTIME_BACKEND_H_
#define HONE_CLIENT_NETWORK_RUNTIME_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

#include "client/network/runtime/hone_network.h"
#include "client/network/runtime/hone_program.h"
#include "client/network/runtime/plan_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of each backend's network. */
struct hone_network {
  HonePlan plan;
  const struct HoneBackend* backend;
  const hone_network_kernel* kernels;
  const char* weights;         /* NULL once a GPU has them */
  hone_network_tensor* inputs; /* of each part of the plan */
  hone_network_tensor* outputs;
  int64_t* sizes;
};

/* The first member of each backend's instance. */
struct hone_network_instance {
  const hone_network* network;
  const HoneRuntime* runtime;
  uint64_t bytes; /* that it has allocated */
  uint32_t part;  /* of the plan that the next run executes */
  int64_t value;  /* of the open dimension in the next run, if it is padded to the size; else 0 */
};

/* How networks run on a kind of device. Networks and instances are zero at first. If they
 * cannot be opened or made, they are closed and freed as usual. */
typedef struct HoneBackend {
  size_t network_bytes;
  size_t instance_bytes;
  const struct HoneGpuDriver* driver; /* of a GPU (gpu_driver.h); NULL for a CPU */
  /* Makes a network that has its weights ready for instances. */
  hone_network_status (*open)(hone_network* network, int32_t device);
  void (*close)(hone_network* network);
  hone_network_status (*new_instance)(hone_network_instance* instance);
  void (*free_instance)(hone_network_instance* instance);
  /* As hone_network_profile, of buffers that were checked. step_ns may be null. */
  hone_network_status (*run)(hone_network_instance* instance, const void* const* inputs,
                             void* const* outputs, int64_t* step_ns);
} HoneBackend;

/* Sets what hone_network_error returns. Returns the status. */
__attribute__((format(printf, 2, 3))) hone_network_status hone_fail(hone_network_status status,
                                                                    const char* format, ...);
hone_network_status hone_fail_memory(void);
/* Puts a text and ": " before what was said about a failure. Returns its status. */
__attribute__((format(printf, 2, 3))) hone_network_status
hone_fail_while(hone_network_status status, const char* format, ...);

static inline const char* hone_text(const hone_network* network, uint32_t offset) {
  return network->plan.texts + offset;
}
static inline uint32_t hone_last_part(const hone_network* network) {
  return hone_plan_parts(&network->plan) - 1;
}
/* An input or output of a part of the plan. */
static inline const HonePlanTensor* hone_input_of(const hone_network* network, uint32_t part,
                                                  uint32_t i) {
  const HonePlan* const plan = &network->plan;
  return &plan->tensors[plan->inputs[(size_t)part * plan->header->inputs + i]];
}
static inline const HonePlanTensor* hone_output_of(const hone_network* network, uint32_t part,
                                                   uint32_t o) {
  const HonePlan* const plan = &network->plan;
  return &plan->tensors[plan->outputs[(size_t)part * plan->header->outputs + o]];
}

/* Compares the elements of a tensor with a check of a step. Kernels would clamp indices that are
 * out of range. */
hone_network_status hone_check_indices(const hone_network* network, const HonePlanStep* step,
                                       const HonePlanCheck* check, const char* elements);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HONE_CLIENT_NETWORK_RUNTIME_BACKEND_H_ */
