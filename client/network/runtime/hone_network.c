#include "client/network/runtime/hone_network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "client/network/runtime/hone_program.h"
#include "client/network/runtime/plan_reader.h"
#include "client/network/runtime/weights_memory.h"
#include "common/target/thread_pool.h"

enum { kKernelAbi = 2, kKernelOk = 0, kKernelUnsupportedCpu = 1 };

struct hone_network {
  HonePlan plan;
  const hone_network_kernel* kernels;
  const char* weights;
  /* Addresses without memory, for constants of which kernels read only the packed form. Kernels that
   * were built by older versions require a pointer that is not null; if a kernel reads it by
   * mistake, the program ends. */
  char* absent;
  hone_network_tensor* inputs;
  hone_network_tensor* outputs;
};

struct hone_network_instance {
  const hone_network* network;
  const HoneRuntime* runtime;
  char* memory; /* the arena, the workspace, and aligned copies of the caller's buffers */
  uint64_t memory_bytes;
  char* workspace;
  char** places;  /* of tensors; those of inputs and outputs change in each run */
  void** buffers; /* of one step */
  char** copies;  /* of inputs, then outputs */
};

static _Thread_local char message[512];

static hone_network_status Fail(hone_network_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return status;
}

static uint64_t Align(uint64_t bytes) {
  return (bytes + HONE_NETWORK_ALIGNMENT - 1) / HONE_NETWORK_ALIGNMENT * HONE_NETWORK_ALIGNMENT;
}

static const char* Text(const hone_network* network, uint32_t offset) {
  return network->plan.texts + offset;
}

static const HonePlanTensor* Input(const hone_network* network, uint32_t i) {
  return &network->plan.tensors[network->plan.inputs[i]];
}

static const HonePlanTensor* Output(const hone_network* network, uint32_t i) {
  return &network->plan.tensors[network->plan.outputs[i]];
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
  if (none == NULL) return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory");
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t k = 0; k < network->plan.header->kernels && status == HONE_NETWORK_OK; ++k) {
    const HonePlanKernel* const planned = &network->plan.kernels[k];
    const hone_network_kernel* const kernel = &network->kernels[k];
    const char* const name = Text(network, planned->name);
    if (kernel->abi() != kKernelAbi) {
      status = Fail(HONE_NETWORK_BAD_FILE, "the kernel of %s has another interface", name);
    } else if ((uint64_t)kernel->packed_bytes() != planned->packed_bytes) {
      status = Fail(HONE_NETWORK_BAD_FILE,
                    "the kernel of %s has other packed constants than the plan", name);
    } else if (kernel->run(none, NULL, NULL, NULL) == kKernelUnsupportedCpu) {
      status = Fail(HONE_NETWORK_UNSUPPORTED_CPU,
                    "the kernel of %s uses instructions that this CPU does not have; tune and "
                    "export the network for "
                    "this CPU",
                    name);
    }
  }
  free(none);
  return status;
}

static hone_network_tensor Describe(const hone_network* network, const HonePlanTensor* tensor) {
  const hone_network_tensor described = {Text(network, tensor->name), Text(network, tensor->dtype),
                                         (int32_t)tensor->rank, tensor->shape,
                                         (int64_t)tensor->bytes};
  return described;
}

static hone_network_status Load(hone_network* network, const char* weights_path) {
  const HonePlanHeader* const header = network->plan.header;
  network->inputs = calloc(header->inputs + 1, sizeof *network->inputs);
  network->outputs = calloc(header->outputs + 1, sizeof *network->outputs);
  if (network->inputs == NULL || network->outputs == NULL)
    return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory");
  for (uint32_t i = 0; i < header->inputs; ++i)
    network->inputs[i] = Describe(network, Input(network, i));
  for (uint32_t o = 0; o < header->outputs; ++o)
    network->outputs[o] = Describe(network, Output(network, o));
  switch (hone_weights_read(weights_path, header->weights_bytes, header->id, &network->weights,
                           message, sizeof message)) {
    case HONE_WEIGHTS_OK:
      break;
    case HONE_WEIGHTS_NOT_FOUND:
      return HONE_NETWORK_NOT_FOUND;
    case HONE_WEIGHTS_BAD:
      return HONE_NETWORK_BAD_FILE;
    case HONE_WEIGHTS_NO_MEMORY:
      return HONE_NETWORK_OUT_OF_MEMORY;
  }
  if (header->absent_bytes > 0) {
    void* const absent = mmap(NULL, header->absent_bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (absent == MAP_FAILED) return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of addresses");
    network->absent = absent;
  }
  return CheckKernels(network);
}

hone_network_status hone_network_open_program(const hone_network_program* program,
                                              const char* weights_path, hone_network** network) {
  if (network == NULL || weights_path == NULL)
    return Fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  *network = NULL;
  HonePlan plan;
  const char* const wrong = hone_plan_read(program->plan, program->plan_bytes, &plan);
  if (wrong != NULL) return Fail(HONE_NETWORK_BAD_FILE, "the plan %s", wrong);
  if (plan.header->kernels != program->kernel_count) {
    return Fail(HONE_NETWORK_BAD_FILE, "the plan has another number of kernels");
  }
  hone_network* const opened = calloc(1, sizeof *opened);
  if (opened == NULL) return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory");
  opened->plan = plan;
  opened->kernels = program->kernels;
  const hone_network_status status = Load(opened, weights_path);
  if (status == HONE_NETWORK_OK) {
    *network = opened;
  } else {
    hone_network_close(opened);
  }
  return status;
}

hone_network_status hone_network_verify(const hone_network* network) {
  if (network == NULL) return Fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  const HonePlanHeader* const header = network->plan.header;
  if (hone_weights_have_id(network->weights, header->weights_bytes, header->id))
    return HONE_NETWORK_OK;
  return Fail(HONE_NETWORK_BAD_FILE,
              "the weights are damaged: their bytes are not those of the export");
}

void hone_network_close(hone_network* network) {
  if (network == NULL) return;
  hone_weights_free(network->weights, network->plan.header->weights_bytes);
  if (network->absent != NULL) munmap(network->absent, network->plan.header->absent_bytes);
  free(network->inputs);
  free(network->outputs);
  free(network);
}

int32_t hone_network_input_count(const hone_network* network) {
  return (int32_t)network->plan.header->inputs;
}
int32_t hone_network_output_count(const hone_network* network) {
  return (int32_t)network->plan.header->outputs;
}
const hone_network_tensor* hone_network_inputs(const hone_network* network) {
  return network->inputs;
}
const hone_network_tensor* hone_network_outputs(const hone_network* network) {
  return network->outputs;
}
int32_t hone_network_step_count(const hone_network* network) {
  return (int32_t)network->plan.header->steps;
}

const char* hone_network_step_name(const hone_network* network, int32_t step) {
  return Text(network, network->plan.steps[step].name);
}

const char* hone_network_step_kernel(const hone_network* network, int32_t step) {
  const uint32_t kernel = network->plan.steps[step].kernel;
  return kernel == HONE_PLAN_COPY ? "copy" : Text(network, network->plan.kernels[kernel].name);
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
      return network->absent;
    default:
      return NULL;
  }
}

static hone_network_status Allocate(hone_network_instance* instance) {
  const hone_network* const network = instance->network;
  const HonePlanHeader* const header = network->plan.header;
  const int64_t workspace =
      WorkspaceBytes(network, instance->runtime == NULL ? 1 : instance->runtime->threads);
  if (workspace < 0) return Fail(HONE_NETWORK_INTERNAL, "a kernel needs too much workspace");
  uint64_t bytes = Align(header->arena_bytes) + Align((uint64_t)workspace);
  const uint64_t copies = bytes;
  for (uint32_t i = 0; i < header->inputs; ++i) bytes += Align(Input(network, i)->bytes);
  for (uint32_t o = 0; o < header->outputs; ++o) bytes += Align(Output(network, o)->bytes);
  uint32_t most = 1;
  for (uint32_t s = 0; s < header->steps; ++s) {
    if (network->plan.steps[s].buffers > most) most = network->plan.steps[s].buffers;
  }
  instance->places = calloc(header->tensors + 1, sizeof *instance->places);
  instance->buffers = calloc(most, sizeof *instance->buffers);
  instance->copies = calloc(header->inputs + header->outputs + 1, sizeof *instance->copies);
  if (instance->places == NULL || instance->buffers == NULL || instance->copies == NULL) {
    return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory");
  }
  if (bytes > 0) {
    void* const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory for an instance of %llu bytes",
                  (unsigned long long)bytes);
    }
    instance->memory = memory;
    instance->memory_bytes = bytes;
    madvise(memory, bytes, MADV_HUGEPAGE); /* if the system has such pages */
  }
  instance->workspace = instance->memory + Align(header->arena_bytes);
  char* copy = instance->memory + copies;
  for (uint32_t i = 0; i < header->inputs; ++i) {
    instance->copies[i] = copy;
    copy += Align(Input(network, i)->bytes);
  }
  for (uint32_t o = 0; o < header->outputs; ++o) {
    instance->copies[header->inputs + o] = copy;
    copy += Align(Output(network, o)->bytes);
  }
  for (uint32_t t = 0; t < header->tensors; ++t) {
    instance->places[t] = PlaceOf(network, &network->plan.tensors[t], instance->memory);
  }
  return HONE_NETWORK_OK;
}

hone_network_status hone_network_new_instance(const hone_network* network,
                                              const HoneRuntime* runtime,
                                              hone_network_instance** instance) {
  if (network == NULL || instance == NULL)
    return Fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  *instance = NULL;
  if (runtime != NULL && (runtime->parallel_for == NULL || runtime->threads < 1)) {
    return Fail(HONE_NETWORK_INVALID_ARGUMENT, "the runtime has no threads");
  }
  hone_network_instance* const made = calloc(1, sizeof *made);
  if (made == NULL) return Fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory");
  made->network = network;
  made->runtime = runtime;
  const hone_network_status status = Allocate(made);
  if (status == HONE_NETWORK_OK) {
    *instance = made;
  } else {
    hone_network_free_instance(made);
  }
  return status;
}

void hone_network_free_instance(hone_network_instance* instance) {
  if (instance == NULL) return;
  if (instance->memory != NULL) munmap(instance->memory, instance->memory_bytes);
  free(instance->places);
  free(instance->buffers);
  free(instance->copies);
  free(instance);
}

int64_t hone_network_instance_bytes(const hone_network_instance* instance) {
  return (int64_t)instance->memory_bytes;
}

static int Overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

static hone_network_status CheckBuffers(const hone_network* network, const void* const* inputs,
                                        void* const* outputs) {
  const HonePlanHeader* const header = network->plan.header;
  for (uint32_t i = 0; i < header->inputs; ++i) {
    if (inputs[i] == NULL) return Fail(HONE_NETWORK_INVALID_ARGUMENT, "input %u is null", i);
  }
  for (uint32_t o = 0; o < header->outputs; ++o) {
    if (outputs[o] == NULL) return Fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u is null", o);
    const uint64_t bytes = Output(network, o)->bytes;
    for (uint32_t i = 0; i < header->inputs; ++i) {
      if (Overlap(outputs[o], bytes, inputs[i], Input(network, i)->bytes)) {
        return Fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u overlaps input %u", o, i);
      }
    }
    for (uint32_t other = 0; other < o; ++other) {
      if (Overlap(outputs[o], bytes, outputs[other], Output(network, other)->bytes)) {
        return Fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u overlaps output %u", o, other);
      }
    }
  }
  return HONE_NETWORK_OK;
}

static int IsAligned(const void* pointer) {
  return (uintptr_t)pointer % HONE_NETWORK_ALIGNMENT == 0;
}

/* Sets the places of the tensors in the caller's buffers, or in aligned copies of these. */
static void PlaceBuffers(hone_network_instance* instance, const void* const* inputs,
                         void* const* outputs) {
  const HonePlan* const plan = &instance->network->plan;
  for (uint32_t i = 0; i < plan->header->inputs; ++i) {
    if (!IsAligned(inputs[i]))
      memcpy(instance->copies[i], inputs[i], Input(instance->network, i)->bytes);
  }
  for (uint32_t t = 0; t < plan->header->tensors; ++t) {
    const HonePlanTensor* const tensor = &plan->tensors[t];
    const uint32_t number = tensor->number;
    char* begin;
    if (tensor->place == HONE_PLACE_INPUT) {
      begin = IsAligned(inputs[number]) ? (char*)inputs[number] : instance->copies[number];
    } else if (tensor->place == HONE_PLACE_OUTPUT) {
      begin = IsAligned(outputs[number]) ? outputs[number]
                                         : instance->copies[plan->header->inputs + number];
    } else {
      continue;
    }
    instance->places[t] = begin + tensor->offset;
  }
}

/* Kernels would clamp indices that are out of range. */
static hone_network_status CheckIndices(const hone_network_instance* instance,
                                        const HonePlanStep* step) {
  const hone_network* const network = instance->network;
  for (uint32_t c = 0; c < step->checks; ++c) {
    const HonePlanCheck* const check = &network->plan.checks[step->first_check + c];
    const HonePlanTensor* const tensor = &network->plan.tensors[check->tensor];
    const char* const elements = instance->places[check->tensor];
    const int64_t place = hone_plan_wrong_index(check, elements, tensor->bytes);
    if (place < 0) continue;
    return Fail(HONE_NETWORK_INVALID_ARGUMENT,
                "step '%s': element %lld of '%s' is %lld, but indices must be from %lld to %lld",
                Text(network, step->name), (long long)place, Text(network, tensor->name),
                (long long)hone_plan_index(check, elements, (uint64_t)place),
                -(long long)check->extent, (long long)check->extent - 1);
  }
  return HONE_NETWORK_OK;
}

static hone_network_status RunStep(hone_network_instance* instance, const HonePlanStep* step) {
  const hone_network* const network = instance->network;
  const uint32_t* const tensors = network->plan.buffers + step->first_buffer;
  if (step->kernel == HONE_PLAN_COPY) {
    memcpy(instance->places[tensors[1]], instance->places[tensors[0]],
           network->plan.tensors[tensors[0]].bytes);
    return HONE_NETWORK_OK;
  }
  const hone_network_status status = CheckIndices(instance, step);
  if (status != HONE_NETWORK_OK) return status;
  for (uint32_t b = 0; b < step->buffers; ++b) instance->buffers[b] = instance->places[tensors[b]];
  const int32_t code =
      network->kernels[step->kernel].run(instance->buffers, network->weights + step->packed_offset,
                                         instance->workspace, instance->runtime);
  if (code == kKernelOk) return HONE_NETWORK_OK;
  return Fail(HONE_NETWORK_INTERNAL, "the kernel of step '%s' returned %d",
              Text(network, step->name), (int)code);
}

static int64_t NowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

hone_network_status hone_network_profile(hone_network_instance* instance, const void* const* inputs,
                                         void* const* outputs, int64_t* step_ns) {
  if (instance == NULL) return Fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  const hone_network* const network = instance->network;
  const HonePlanHeader* const header = network->plan.header;
  /* A network may have no inputs. */
  if ((inputs == NULL && header->inputs > 0) || outputs == NULL) {
    return Fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  }
  hone_network_status status = CheckBuffers(network, inputs, outputs);
  if (status != HONE_NETWORK_OK) return status;
  PlaceBuffers(instance, inputs, outputs);
  int64_t before = step_ns == NULL ? 0 : NowNs();
  for (uint32_t s = 0; s < header->steps; ++s) {
    status = RunStep(instance, &network->plan.steps[s]);
    if (status != HONE_NETWORK_OK) return status;
    if (step_ns == NULL) continue;
    const int64_t after = NowNs();
    step_ns[s] = after - before;
    before = after;
  }
  for (uint32_t o = 0; o < header->outputs; ++o) {
    if (!IsAligned(outputs[o])) {
      memcpy(outputs[o], instance->copies[header->inputs + o], Output(network, o)->bytes);
    }
  }
  return HONE_NETWORK_OK;
}

hone_network_status hone_network_run(hone_network_instance* instance, const void* const* inputs,
                                     void* const* outputs) {
  return hone_network_profile(instance, inputs, outputs, NULL);
}

HoneRuntime hone_network_threads(int32_t threads) { return hone_threads(threads); }

const char* hone_network_error(void) { return message; }
