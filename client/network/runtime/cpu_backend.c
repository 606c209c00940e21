/* Networks whose kernels are functions. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "client/network/runtime/backend.h"
#include "client/network/runtime/padding.h"

enum { kKernelAbi = 2, kKernelOk = 0, kKernelUnsupportedCpu = 1 };

typedef struct CpuNetwork {
  hone_network network;
  /* Addresses without memory, for constants of which kernels read only the packed form. If a kernel
   * reads one by mistake, the program ends instead of giving a wrong result. */
  char* absent;
} CpuNetwork;

typedef struct CpuInstance {
  hone_network_instance instance;
  char* memory; /* the arena, the workspace, and aligned copies of the caller's buffers */
  char* workspace;
  char** places;  /* of tensors; those of inputs and outputs change in each run */
  void** buffers; /* of one step */
  char** copies;  /* of inputs, then outputs */
} CpuInstance;

static uint64_t Align(uint64_t bytes) {
  return (bytes + HONE_NETWORK_ALIGNMENT - 1) / HONE_NETWORK_ALIGNMENT * HONE_NETWORK_ALIGNMENT;
}

/* Asks each kernel for its version, its packed bytes and whether it supports the CPU. */
static hone_network_status CheckKernels(const hone_network* network) {
  uint32_t most = 1;
  for (uint32_t k = 0; k < network->plan.header->kernels; ++k) {
    if (network->plan.kernels[k].buffers > most) most = network->plan.kernels[k].buffers;
  }
  /* A kernel checks the CPU first. On a supported CPU it then refuses the null buffers, and does
   * not run. */
  void** const none = calloc(most, sizeof(void*));
  if (none == NULL) return hone_fail_memory();
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t k = 0; k < network->plan.header->kernels && status == HONE_NETWORK_OK; ++k) {
    const HonePlanKernel* const planned = &network->plan.kernels[k];
    const hone_network_kernel* const kernel = &network->kernels[k];
    const char* const name = hone_text(network, planned->name);
    if (kernel->abi() != kKernelAbi) {
      status = hone_fail(HONE_NETWORK_BAD_FILE, "the kernel of %s has another interface", name);
    } else if ((uint64_t)kernel->packed_bytes() != planned->packed_bytes) {
      status = hone_fail(HONE_NETWORK_BAD_FILE,
                         "the kernel of %s has other packed constants than the plan", name);
    } else if (kernel->run(none, NULL, NULL, NULL) == kKernelUnsupportedCpu) {
      status = hone_fail(HONE_NETWORK_UNSUPPORTED_CPU,
                         "the kernel of %s uses instructions that this CPU does not have, or tile "
                         "registers (AMX) that Linux refuses; tune and export the network for "
                         "this CPU",
                         name);
    }
  }
  free(none);
  return status;
}

static hone_network_status Open(hone_network* network, int32_t device) {
  const uint64_t absent_bytes = network->plan.header->absent_bytes;
  (void)device;
  if (absent_bytes > 0) {
    void* const absent =
        mmap(NULL, absent_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (absent == MAP_FAILED) return hone_fail(HONE_NETWORK_OUT_OF_MEMORY, "out of addresses");
    ((CpuNetwork*)network)->absent = absent;
  }
  return CheckKernels(network);
}

static void Close(hone_network* network) {
  char* const absent = ((CpuNetwork*)network)->absent;
  if (absent != NULL) munmap(absent, network->plan.header->absent_bytes);
}

/* The largest workspace of the kernels; -1 if one is not possible. */
static int64_t WorkspaceBytes(const hone_network* network, int32_t threads) {
  int64_t most = 0;
  for (uint32_t k = 0; k < network->plan.header->kernels; ++k) {
    const int64_t bytes = network->kernels[k].workspace_bytes(threads);
    if (bytes < 0 || bytes > (int64_t)HONE_PLAN_MAX_BYTES) return -1;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* The address of a tensor that is not in one of the caller's buffers. */
static char* PlaceOf(const hone_network* network, const HonePlanTensor* tensor, char* arena) {
  switch (tensor->place) {
    case HONE_PLACE_WEIGHTS:
      return (char*)network->weights + tensor->offset;
    case HONE_PLACE_ARENA:
      return arena + tensor->offset;
    case HONE_PLACE_ABSENT:
      return ((const CpuNetwork*)network)->absent;
    default:
      return NULL;
  }
}

static hone_network_status NewInstance(hone_network_instance* base) {
  CpuInstance* const instance = (CpuInstance*)base;
  const hone_network* const network = base->network;
  const HonePlanHeader* const header = network->plan.header;
  const int64_t workspace =
      WorkspaceBytes(network, base->runtime == NULL ? 1 : base->runtime->threads);
  if (workspace < 0) return hone_fail(HONE_NETWORK_INTERNAL, "a kernel needs too much workspace");
  uint64_t bytes = Align(header->arena_bytes) + Align((uint64_t)workspace);
  const uint64_t copies = bytes;
  const uint32_t ends = header->inputs + header->outputs;
  for (uint32_t e = 0; e < ends; ++e) bytes += Align(hone_most_bytes(network, e));
  uint32_t most = 1;
  for (uint32_t s = 0; s < header->steps; ++s) {
    if (network->plan.steps[s].buffers > most) most = network->plan.steps[s].buffers;
  }
  instance->places = calloc(header->tensors + 1, sizeof *instance->places);
  instance->buffers = calloc(most, sizeof *instance->buffers);
  instance->copies = calloc(ends + 1, sizeof *instance->copies);
  if (instance->places == NULL || instance->buffers == NULL || instance->copies == NULL) {
    return hone_fail_memory();
  }
  if (bytes > 0) {
    void* const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return hone_fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory for an instance of %llu bytes",
                       (unsigned long long)bytes);
    }
    instance->memory = memory;
    base->bytes = bytes;
    madvise(memory, bytes, MADV_HUGEPAGE); /* if the system has such pages */
  }
  instance->workspace = instance->memory + Align(header->arena_bytes);
  char* copy = instance->memory + copies;
  for (uint32_t e = 0; e < ends; ++e) {
    instance->copies[e] = copy;
    copy += Align(hone_most_bytes(network, e));
  }
  for (uint32_t t = 0; t < header->tensors; ++t) {
    instance->places[t] = PlaceOf(network, &network->plan.tensors[t], instance->memory);
  }
  return HONE_NETWORK_OK;
}

static void FreeInstance(hone_network_instance* base) {
  CpuInstance* const instance = (CpuInstance*)base;
  if (instance->memory != NULL) munmap(instance->memory, base->bytes);
  free(instance->places);
  free(instance->buffers);
  free(instance->copies);
}

static int IsAligned(const void* pointer) {
  return (uintptr_t)pointer % HONE_NETWORK_ALIGNMENT == 0;
}

/* Sets the places of the tensors in the caller's buffers, or in aligned copies of these. */
static void PlaceBuffers(CpuInstance* instance, const HonePlanSize* part, const void* const* inputs,
                         void* const* outputs) {
  const hone_network_instance* const base = &instance->instance;
  const hone_network* const network = base->network;
  const HonePlan* const plan = &network->plan;
  for (uint32_t i = 0; i < plan->header->inputs; ++i) {
    const HonePlanTensor* const tensor = hone_input_of(network, base->part, i);
    if (hone_is_padded(base, i)) {
      hone_pad_input(base, i, inputs[i], instance->copies[i]);
    } else if (!IsAligned(inputs[i])) {
      memcpy(instance->copies[i], inputs[i], tensor->bytes);
    }
  }
  for (uint32_t t = part->first_tensor; t < part->first_tensor + part->tensors; ++t) {
    const HonePlanTensor* const tensor = &plan->tensors[t];
    const uint32_t number = tensor->number;
    char* begin;
    if (tensor->place == HONE_PLACE_INPUT) {
      begin = IsAligned(inputs[number]) && !hone_is_padded(base, number) ? (char*)inputs[number]
                                                                         : instance->copies[number];
    } else if (tensor->place == HONE_PLACE_OUTPUT) {
      begin = IsAligned(outputs[number]) && !hone_is_padded(base, plan->header->inputs + number)
                  ? outputs[number]
                  : instance->copies[plan->header->inputs + number];
    } else {
      continue;
    }
    /* The buffer of an empty tensor may be null. */
    instance->places[t] = begin == NULL ? NULL : begin + tensor->offset;
  }
}

static hone_network_status RunStep(CpuInstance* instance, const HonePlanStep* step) {
  const hone_network* const network = instance->instance.network;
  const uint32_t* const tensors = network->plan.buffers + step->first_buffer;
  if (step->kernel == HONE_PLAN_COPY) {
    const uint64_t bytes = network->plan.tensors[tensors[0]].bytes;
    if (bytes > 0) memcpy(instance->places[tensors[1]], instance->places[tensors[0]], bytes);
    return HONE_NETWORK_OK;
  }
  for (uint32_t c = 0; c < step->checks; ++c) {
    const HonePlanCheck* const check = &network->plan.checks[step->first_check + c];
    const hone_network_status status =
        hone_check_indices(network, step, check, instance->places[check->tensor]);
    if (status != HONE_NETWORK_OK) return status;
  }
  for (uint32_t b = 0; b < step->buffers; ++b) instance->buffers[b] = instance->places[tensors[b]];
  const int32_t code =
      network->kernels[step->kernel].run(instance->buffers, network->weights + step->packed_offset,
                                         instance->workspace, instance->instance.runtime);
  if (code == kKernelOk) return HONE_NETWORK_OK;
  return hone_fail(HONE_NETWORK_INTERNAL, "the kernel of step '%s' returned %d",
                   hone_text(network, step->name), (int)code);
}

static int64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static hone_network_status Run(hone_network_instance* base, const void* const* inputs,
                               void* const* outputs, int64_t* step_ns) {
  CpuInstance* const instance = (CpuInstance*)base;
  const hone_network* const network = base->network;
  const HonePlanHeader* const header = network->plan.header;
  const HonePlanSize part = hone_plan_part(&network->plan, base->part);
  PlaceBuffers(instance, &part, inputs, outputs);
  int64_t before = step_ns == NULL ? 0 : NowNs();
  for (uint32_t s = 0; s < part.steps; ++s) {
    const hone_network_status status = RunStep(instance, &network->plan.steps[part.first_step + s]);
    if (status != HONE_NETWORK_OK) return status;
    if (step_ns == NULL) continue;
    const int64_t after = NowNs();
    step_ns[s] = after - before;
    before = after;
  }
  for (uint32_t o = 0; o < header->outputs; ++o) {
    const HonePlanTensor* const tensor = hone_output_of(network, base->part, o);
    const char* const copy = instance->copies[header->inputs + o];
    if (hone_is_padded(base, header->inputs + o)) {
      hone_unpad_output(base, o, copy, outputs[o]);
    } else if (!IsAligned(outputs[o])) {
      memcpy(outputs[o], copy, tensor->bytes);
    }
  }
  return HONE_NETWORK_OK;
}

const HoneBackend hone_cpu_backend = {
    .network_bytes = sizeof(CpuNetwork),
    .instance_bytes = sizeof(CpuInstance),
    .open = Open,
    .close = Close,
    .new_instance = NewInstance,
    .free_instance = FreeInstance,
    .run = Run,
};
