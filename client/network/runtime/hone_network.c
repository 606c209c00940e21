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

/* Describes the inputs or outputs of all parts; null if memory is short. */
static hone_network_tensor* Describe(const hone_network* network, const uint32_t* ends,
                                     uint32_t count) {
  const HonePlan* const plan = &network->plan;
  const uint32_t parts = hone_plan_parts(plan);
  hone_network_tensor* const list = calloc((size_t)parts * count + 1, sizeof *list);
  if (list == NULL) return NULL;
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t axis = hone_plan_open_axis(plan, ends, count, i);
    for (uint32_t p = 0; p < parts; ++p) {
      const size_t place = (size_t)p * count + i;
      const HonePlanTensor* const tensor = &plan->tensors[ends[place]];
      const hone_network_tensor described = {hone_text(network, tensor->name),
                                             hone_text(network, tensor->dtype),
                                             (int32_t)tensor->rank,
                                             tensor->shape,
                                             (int64_t)tensor->bytes,
                                             axis < 0 ? -1 : axis};
      list[place] = described;
    }
  }
  return list;
}

static hone_network_status Load(hone_network* network, const char* weights_path, int32_t device) {
  const HonePlanHeader* const header = network->plan.header;
  network->inputs = Describe(network, network->plan.inputs, header->inputs);
  network->outputs = Describe(network, network->plan.outputs, header->outputs);
  network->sizes = calloc((size_t)header->sizes + 1, sizeof *network->sizes);
  if (network->inputs == NULL || network->outputs == NULL || network->sizes == NULL)
    return hone_fail_memory();
  for (uint32_t k = 0; k < header->sizes; ++k) network->sizes[k] = network->plan.sizes[k].value;
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
  free(network->sizes);
  free(network);
}

int32_t hone_network_input_count(const hone_network* network) {
  return (int32_t)network->plan.header->inputs;
}
int32_t hone_network_output_count(const hone_network* network) {
  return (int32_t)network->plan.header->outputs;
}
const hone_network_tensor* hone_network_inputs(const hone_network* network) {
  return hone_network_inputs_of(network, (int32_t)hone_last_part(network));
}
const hone_network_tensor* hone_network_outputs(const hone_network* network) {
  return hone_network_outputs_of(network, (int32_t)hone_last_part(network));
}
const hone_network_tensor* hone_network_inputs_of(const hone_network* network, int32_t number) {
  return network->inputs + (size_t)number * network->plan.header->inputs;
}
const hone_network_tensor* hone_network_outputs_of(const hone_network* network, int32_t number) {
  return network->outputs + (size_t)number * network->plan.header->outputs;
}

int32_t hone_network_size_count(const hone_network* network) {
  return (int32_t)network->plan.header->sizes;
}
const int64_t* hone_network_sizes(const hone_network* network) { return network->sizes; }
const char* hone_network_size_name(const hone_network* network) {
  return network->plan.header->sizes == 0 ? "" : hone_text(network, network->plan.sizes[0].name);
}

/* The least value that a size runs. */
static int64_t LeastOf(const HonePlan* plan, uint32_t k) {
  if (!plan->sizes[k].pads) return plan->sizes[k].value;
  return k == 0 ? 1 : plan->sizes[k - 1].value + 1;
}

/* Writes the values that a network runs: "1 to 8, 16". */
static void ListValues(const HonePlan* plan, char* text, size_t bytes) {
  size_t length = 0;
  text[0] = '\0';
  for (uint32_t k = 0; k < plan->header->sizes && length < bytes; ++k) {
    const int64_t least = LeastOf(plan, k);
    while (k + 1 < plan->header->sizes && LeastOf(plan, k + 1) == plan->sizes[k].value + 1) ++k;
    const int64_t most = plan->sizes[k].value;
    const char* const comma = length == 0 ? "" : ", ";
    const int added =
        least == most
            ? snprintf(text + length, bytes - length, "%s%lld", comma, (long long)most)
            : snprintf(text + length, bytes - length, "%s%lld to %lld", comma, (long long)least,
                       (long long)most);
    length += added > 0 ? (size_t)added : 0;
  }
}

hone_network_status hone_network_find_size(const hone_network* network, int64_t value,
                                           int32_t* number) {
  if (network == NULL || number == NULL)
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  const HonePlan* const plan = &network->plan;
  if (plan->header->sizes == 0)
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "the network has no open dimension");
  uint32_t k = 0;
  while (k < plan->header->sizes && plan->sizes[k].value < value) ++k;
  if (k < plan->header->sizes && LeastOf(plan, k) <= value) {
    *number = (int32_t)k;
    return HONE_NETWORK_OK;
  }
  char values[1024];
  ListValues(plan, values, sizeof values);
  return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "%s is %lld, but the network runs %s",
                   hone_network_size_name(network), (long long)value, values);
}

int32_t hone_network_step_count(const hone_network* network) {
  return (int32_t)hone_plan_part(&network->plan, hone_last_part(network)).steps;
}

static const HonePlanStep* StepOf(const hone_network* network, int32_t step) {
  const HonePlan* const plan = &network->plan;
  return &plan->steps[hone_plan_part(plan, hone_last_part(network)).first_step + (uint32_t)step];
}

const char* hone_network_step_name(const hone_network* network, int32_t step) {
  return hone_text(network, StepOf(network, step)->name);
}

const char* hone_network_step_kernel(const hone_network* network, int32_t step) {
  const uint32_t kernel = StepOf(network, step)->kernel;
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

/* The bytes of an input or output in the next run. */
static uint64_t RunBytes(const hone_network_instance* instance, const HonePlanTensor* tensor,
                         const hone_network_tensor* described) {
  if (instance->value == 0 || described->open_axis < 0) return tensor->bytes;
  const HonePlanSize* const size = &instance->network->plan.sizes[instance->part];
  return tensor->bytes / (uint64_t)size->value * (uint64_t)instance->value;
}

static uint64_t InputBytes(const hone_network_instance* instance, uint32_t i) {
  return RunBytes(instance, hone_input_of(instance->network, instance->part, i),
                  &instance->network->inputs[i]);
}

static uint64_t OutputBytes(const hone_network_instance* instance, uint32_t o) {
  return RunBytes(instance, hone_output_of(instance->network, instance->part, o),
                  &instance->network->outputs[o]);
}

/* Buffers of empty tensors may be null. */
static hone_network_status CheckBuffers(const hone_network_instance* instance,
                                        const void* const* inputs, void* const* outputs) {
  const HonePlanHeader* const header = instance->network->plan.header;
  for (uint32_t i = 0; i < header->inputs; ++i) {
    if (inputs[i] == NULL && InputBytes(instance, i) > 0)
      return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "input %u is null", i);
  }
  for (uint32_t o = 0; o < header->outputs; ++o) {
    const uint64_t bytes = OutputBytes(instance, o);
    if (outputs[o] == NULL && bytes > 0)
      return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u is null", o);
    for (uint32_t i = 0; i < header->inputs; ++i) {
      if (Overlap(outputs[o], bytes, inputs[i], InputBytes(instance, i))) {
        return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u overlaps input %u", o, i);
      }
    }
    for (uint32_t other = 0; other < o; ++other) {
      if (Overlap(outputs[o], bytes, outputs[other], OutputBytes(instance, other))) {
        return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "output %u overlaps output %u", o, other);
      }
    }
  }
  return HONE_NETWORK_OK;
}

/* Writes the sizes, which run without padding: "8, 16". */
static void ListSizes(const HonePlan* plan, char* text, size_t bytes) {
  size_t length = 0;
  text[0] = '\0';
  for (uint32_t k = 0; k < plan->header->sizes && length < bytes; ++k) {
    const int added = snprintf(text + length, bytes - length, "%s%lld", k == 0 ? "" : ", ",
                               (long long)plan->sizes[k].value);
    length += added > 0 ? (size_t)added : 0;
  }
}

static int IsZero(const HonePlanMask* mask, const uint8_t* element) {
  for (uint32_t b = 0; b < mask->element_bytes; ++b)
    if (element[b] != 0) return 0;
  return 1;
}

/* Whether an element of a mask shows its sample. Zero may have a sign. */
static int Shows(const HonePlanMask* mask, const char* element) {
  for (uint32_t s = 0; s < mask->shown; ++s) {
    uint8_t bytes[sizeof mask->hides];
    memcpy(bytes, element, mask->element_bytes);
    if (mask->is_float && IsZero(mask, mask->shows[s])) bytes[mask->element_bytes - 1] &= 0x7f;
    if (memcmp(bytes, mask->shows[s], mask->element_bytes) == 0) return 1;
  }
  return 0;
}

/* Checks that each row of a mask shows a sample that the caller gave, or the first one. If it hid
 * all, they and the padding would have the same share. The elements of a row are `stride` elements
 * apart. */
static hone_network_status CheckMask(const hone_network_instance* instance,
                                     const HonePlanMask* mask, const char* elements) {
  const hone_network* const network = instance->network;
  const HonePlanTensor* const tensor = hone_input_of(network, mask->size, mask->input);
  const uint32_t axis = (uint32_t)network->inputs[mask->input].open_axis;
  uint64_t blocks = 1, stride = 1;
  for (uint32_t d = 0; d < tensor->rank; ++d) {
    if (d < axis) blocks *= (uint64_t)tensor->shape[d];
    if (d > axis) stride *= (uint64_t)tensor->shape[d];
  }
  const uint64_t given = (uint64_t)instance->value;
  const int needs_first = mask->needs == HONE_MASK_NEEDS_FIRST;
  const uint64_t candidates = needs_first ? 1 : given;
  for (uint64_t row = 0; row < blocks * stride; ++row) {
    uint64_t at = row / stride * given * stride + row % stride;
    uint64_t sample = 0;
    while (sample < candidates && !Shows(mask, elements + at * mask->element_bytes)) {
      at += stride;
      ++sample;
    }
    if (sample < candidates) continue;
    char sizes[1024];
    ListSizes(&network->plan, sizes, sizeof sizes);
    const char* const shown = mask->shown > 1                   ? "0 or 1"
                              : IsZero(mask, mask->shows[0]) ? "0"
                                                                : "1";
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT,
                     "row %llu of input '%s' shows no position%s %s), which padding needs: %s is "
                     "%lld, and %s run without padding",
                     (unsigned long long)row, hone_text(network, tensor->name),
                     needs_first ? " at its start (the first element is not" : " (no element is",
                     shown,
                     hone_network_size_name(network), (long long)instance->value, sizes);
  }
  return HONE_NETWORK_OK;
}

static hone_network_status CheckMasks(const hone_network_instance* instance,
                                      const void* const* inputs) {
  const HonePlan* const plan = &instance->network->plan;
  if (instance->value == 0) return HONE_NETWORK_OK; /* nothing is padded */
  for (uint32_t m = 0; m < plan->header->masks; ++m) {
    const HonePlanMask* const mask = &plan->masks[m];
    if (mask->size != instance->part || mask->needs == HONE_MASK_NEEDS_NOTHING) continue;
    const hone_network_status status = CheckMask(instance, mask, inputs[mask->input]);
    if (status != HONE_NETWORK_OK) return status;
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
                   (long long)check->least, (long long)check->extent - 1);
}

static hone_network_status Run(hone_network_instance* instance, const void* const* inputs,
                               void* const* outputs, int64_t* step_ns) {
  const hone_network* const network = instance->network;
  const HonePlanHeader* const header = network->plan.header;
  /* A network may have no inputs. */
  if ((inputs == NULL && header->inputs > 0) || outputs == NULL) {
    return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  }
  hone_network_status status = CheckBuffers(instance, inputs, outputs);
  if (status == HONE_NETWORK_OK) status = CheckMasks(instance, inputs);
  return status != HONE_NETWORK_OK ? status
                                   : network->backend->run(instance, inputs, outputs, step_ns);
}

hone_network_status hone_network_profile(hone_network_instance* instance, const void* const* inputs,
                                         void* const* outputs, int64_t* step_ns) {
  if (instance == NULL) return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  instance->part = hone_last_part(instance->network);
  instance->value = 0;
  return Run(instance, inputs, outputs, step_ns);
}

hone_network_status hone_network_run_size(hone_network_instance* instance, int64_t value,
                                          const void* const* inputs, void* const* outputs) {
  if (instance == NULL) return hone_fail(HONE_NETWORK_INVALID_ARGUMENT, "a pointer is null");
  int32_t number;
  const hone_network_status status = hone_network_find_size(instance->network, value, &number);
  if (status != HONE_NETWORK_OK) return status;
  instance->part = (uint32_t)number;
  instance->value = instance->network->sizes[number] == value ? 0 : value;
  return Run(instance, inputs, outputs, NULL);
}

hone_network_status hone_network_run(hone_network_instance* instance, const void* const* inputs,
                                     void* const* outputs) {
  return hone_network_profile(instance, inputs, outputs, NULL);
}

HoneRuntime hone_network_threads(int32_t threads) { return hone_threads(threads); }

const char* hone_network_error(void) { return message; }
