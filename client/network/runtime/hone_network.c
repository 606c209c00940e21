#include "client/network/runtime/hone_network.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/network/runtime/backend.h"
#include "client/network/runtime/weights_memory.h"
#include "common/target/thread_pool.h"

static _Thread_local char message[4096]; /* compilers of GPUs say much */

hone_network_status hone_fail(hone_network_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return status;
}

hone_network_status hone_fail_while(hone_network_status status, const char* format, ...) {
  char why[sizeof message];
  memcpy(why, message, sizeof message);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  const size_t length = strlen(message);
  snprintf(message + length, sizeof message - length, ": %.400s", why);
  return status;
}

hone_network_status hone_fail_memory(void) {
  return hone_fail(HONE_NETWORK_OUT_OF_MEMORY, "out of memory");
}

static hone_network_tensor Describe(const hone_network* network, const HonePlanTensor* tensor) {
  const hone_network_tensor described = {hone_text(network, tensor->name),
                                         hone_text(network, tensor->dtype), (int32_t)tensor->rank,
                                         tensor->shape, (int64_t)tensor->bytes};
  return described;
}

static hone_network_status Load(hone_network* network, const char* weights_path, int32_t device) {
  const HonePlanHeader* const header = network->plan.header;
  network->inputs = calloc(header->inputs + 1, sizeof *network->inputs);
  network->outputs = calloc(header->outputs + 1, sizeof *network->outputs);
  if (network->inputs == NULL || network->outputs == NULL) return hone_fail_memory();
  for (uint32_t i = 0; i < header->inputs; ++i)
    network->inputs[i] = Describe(network, hone_input(network, i));
  for (uint32_t o = 0; o < header->outputs; ++o)
    network->outputs[o] = Describe(network, hone_output(network, o));
  const hone_network_status status = hone_weights_read(
      weights_path, header->weights_bytes, header->id, &network->weights, message, sizeof message);
  return status != HONE_NETWORK_OK ? status : network->backend->open(network, device);
}

hone_network_status hone_network_open_program(const hone_network_program* program,
                                              const char* weights_path, int32_t device,
                                              hone_network** network) {
  if (network == NULL || weights_path == NULL)
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  *network = NULL;
  HonePlan plan;
  const char* const wrong = hone_plan_read(program->plan, program->plan_bytes, &plan);
  if (wrong != NULL) return hone_fail(HONE_NETWORK_BAD_FILE, "the plan %s", wrong);
  const int is_gpu = program->backend->driver != NULL;
  if (plan.header->is_gpu != (uint32_t)is_gpu ||
      (!is_gpu && plan.header->kernels != program->kernel_count)) {
    return hone_fail(HONE_NETWORK_BAD_FILE, "the plan has other kernels");
  }
  hone_network* const opened = calloc(1, program->backend->network_bytes);
  if (opened == NULL) return hone_fail_memory();
  opened->plan = plan;
  opened->backend = program->backend;
  opened->kernels = program->kernels;
  const hone_network_status status = Load(opened, weights_path, device);
  if (status == HONE_NETWORK_OK) {
    *network = opened;
  } else {
    hone_network_close(opened);
  }
  return status;
}

hone_network_status hone_network_verify(const hone_network* network) {
  if (network == NULL) return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  const HonePlanHeader* const header = network->plan.header;
  if (network->weights == NULL ||
      hone_weights_have_id(network->weights, header->weights_bytes, header->id))
    return HONE_NETWORK_OK;
  return hone_fail(HONE_NETWORK_BAD_FILE,
                   "the weights are damaged: their bytes are not those of the export");
}

void hone_network_close(hone_network* network) {
  if (network == NULL) return;
  network->backend->close(network);
  hone_weights_free(network->weights, network->plan.header->weights_bytes);
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
  return hone_text(network, network->plan.steps[step].name);
}

const char* hone_network_step_kernel(const hone_network* network, int32_t step) {
  const uint32_t kernel = network->plan.steps[step].kernel;
  return kernel == HONE_PLAN_COPY ? "copy" : hone_text(network, network->plan.kernels[kernel].name);
}

hone_network_status hone_network_new_instance(const hone_network* network,
                                              const HoneRuntime* runtime,
                                              hone_network_instance** instance) {
  if (network == NULL || instance == NULL)
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  *instance = NULL;
  if (runtime != NULL && (runtime->parallel_for == NULL || runtime->threads < 1)) {
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "the runtime has no threads");
  }
  hone_network_instance* const made = calloc(1, network->backend->instance_bytes);
  if (made == NULL) return hone_fail_memory();
  made->network = network;
  made->runtime = runtime;
  const hone_network_status status = network->backend->new_instance(made);
  if (status == HONE_NETWORK_OK) {
    *instance = made;
  } else {
    hone_network_free_instance(made);
  }
  return status;
}

void hone_network_free_instance(hone_network_instance* instance) {
  if (instance == NULL) return;
  instance->network->backend->free_instance(instance);
  free(instance);
}

int64_t hone_network_instance_bytes(const hone_network_instance* instance) {
  return (int64_t)instance->bytes;
}

static int Overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && (uintptr_t)a < (uintptr_t)b + b_bytes &&
         (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* Buffers of empty tensors may be null. */
static hone_network_status CheckBuffers(const hone_network* network, const void* const* inputs,
                                        void* const* outputs) {
  const HonePlanHeader* const header = network->plan.header;
  for (uint32_t i = 0; i < header->inputs; ++i) {
    if (inputs[i] == NULL && hone_input(network, i)->bytes > 0)
      return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "input %u is null", i);
  }
  for (uint32_t o = 0; o < header->outputs; ++o) {
    const uint64_t bytes = hone_output(network, o)->bytes;
    if (outputs[o] == NULL && bytes > 0)
      return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u is null", o);
    for (uint32_t i = 0; i < header->inputs; ++i) {
      if (Overlap(outputs[o], bytes, inputs[i], hone_input(network, i)->bytes)) {
        return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u overlaps input %u", o, i);
      }
    }
    for (uint32_t other = 0; other < o; ++other) {
      if (Overlap(outputs[o], bytes, outputs[other], hone_output(network, other)->bytes)) {
        return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u overlaps output %u", o, other);
      }
    }
  }
  return HONE_NETWORK_OK;
}

hone_network_status hone_check_indices(const hone_network* network, const HonePlanStep* step,
                                       const HonePlanCheck* check, const char* elements) {
  const HonePlanTensor* const tensor = &network->plan.tensors[check->tensor];
  const int64_t place = hone_plan_wrong_index(check, elements, tensor->bytes);
  if (place < 0) return HONE_NETWORK_OK;
  return hone_fail(HONE_NETWORK_INVALID_ARGUMENT,
                   "step '%s': element %lld of '%s' is %lld, but indices must be from %lld to %lld",
                   hone_text(network, step->name), (long long)place,
                   hone_text(network, tensor->name),
                   (long long)hone_plan_index(check, elements, (uint64_t)place),
                   -(long long)check->extent, (long long)check->extent - 1);
}

hone_network_status hone_network_profile(hone_network_instance* instance, const void* const* inputs,
                                         void* const* outputs, int64_t* step_ns) {
  if (instance == NULL) return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  const hone_network* const network = instance->network;
  const HonePlanHeader* const header = network->plan.header;
  /* A network may have no inputs. */
  if ((inputs == NULL && header->inputs > 0) || outputs == NULL) {
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  }
  const hone_network_status status = CheckBuffers(network, inputs, outputs);
  return status != HONE_NETWORK_OK ? status
                                   : network->backend->run(instance, inputs, outputs, step_ns);
}

hone_network_status hone_network_run(hone_network_instance* instance, const void* const* inputs,
                                     void* const* outputs) {
  return hone_network_profile(instance, inputs, outputs, NULL);
}

HoneRuntime hone_network_threads(int32_t threads) { return hone_threads(threads); }

const char* hone_network_error(void) { return message; }
