/* Networks whose kernels are code for a GPU. */
#include <stdlib.h>

#include "client/network/runtime/backend.h"
#include "client/network/runtime/gpu_driver.h"
#include "client/network/runtime/padding.h"
#include "client/network/runtime/weights_memory.h"

typedef struct GpuNetwork {
  hone_network network;
  HoneGpu* gpu;
  HoneGpuLimits limits;
  HoneGpuModule** modules; /* of each kernel */
  HoneGpuMemory* pieces;   /* of the weights */
} GpuNetwork;

/* A launch, or a copy of `bytes`. */
typedef struct Command {
  HoneGpuLaunch* launch; /* NULL: a copy */
  HoneGpuMemory from, to;
  uint64_t bytes;
} Command;

/* The memory and the commands of the steps of all sizes, or of the packing. */
typedef struct Work {
  int packs;
  uint64_t bytes;         /* of the buffers */
  HoneGpuMemory* buffers; /* of the inputs, then of the outputs, the arena and the workspace; for
                             the size that needs most */
  HoneGpuMemory* tensors; /* in these buffers and in the weights */
  HoneGpuMemory* parts;   /* those of the tensors that are no whole buffers */
  uint32_t part_count;
  Command* commands;
  uint32_t command_count;
  uint32_t* begins; /* the first command of each step, and the end of those of the last one */
  HoneGpuQueue* queue;
} Work;

typedef struct GpuInstance {
  hone_network_instance instance;
  Work work;
  HoneGpuGraph** graphs; /* of the steps of each size; NULL: they are launched one by one */
  char** copies;         /* of inputs, then outputs, for runs that are padded */
  char* memory;          /* of the copies */
} GpuInstance;

static const HoneGpuDriver* DriverOf(const GpuNetwork* network) {
  return network->network.backend->driver;
}

static uint32_t BufferCount(const HonePlanHeader* header) {
  return header->inputs + header->outputs + 2;
}

/* The size of a buffer of a run. Packing needs only the workspace. */
static uint64_t BufferBytes(const hone_network* network, uint32_t buffer, int packs) {
  const HonePlanHeader* const header = network->plan.header;
  const uint32_t arena = header->inputs + header->outputs;
  if (buffer > arena) {
    uint64_t most = 0;
    for (uint32_t k = 0; k < header->kernels; ++k) {
      const uint64_t bytes = network->plan.kernels[k].workspace_bytes;
      if (bytes > most) most = bytes;
    }
    return most;
  }
  if (packs) return 0;
  return buffer == arena ? header->arena_bytes : hone_most_bytes(network, buffer);
}

/* Allocates memory, and says how much the network needs if the device has too little. */
static hone_network_status Allocate(GpuNetwork* network, uint64_t bytes, HoneGpuMemory* memory) {
  const HonePlan* const plan = &network->network.plan;
  const hone_network_status status = DriverOf(network)->allocate(network->gpu, bytes, memory);
  if (status != HONE_NETWORK_OUT_OF_MEMORY) return status;
  uint64_t constants = 0, others = 0;
  for (uint32_t p = 0; p < plan->header->pieces; ++p) constants += plan->pieces[p].bytes;
  for (uint32_t b = 0; b < BufferCount(plan->header); ++b)
    others += BufferBytes(&network->network, b, /*packs=*/0);
  return hone_fail_while(status,
                         "the device has too little memory for this network, which needs %.1f MiB, "
                         "of which constants %.1f MiB",
                         (double)(constants + others) / (1 << 20), (double)constants / (1 << 20));
}

/* Makes the part of a buffer that a tensor has. No kernel reads an empty tensor, and devices refuse
 * parts without bytes. */
static hone_network_status PlaceTensor(const GpuNetwork* network, Work* work, uint32_t number) {
  const HonePlan* const plan = &network->network.plan;
  const HonePlanTensor* const tensor = &plan->tensors[number];
  const uint32_t inputs = plan->header->inputs, arena = inputs + plan->header->outputs;
  if (tensor->bytes == 0 || tensor->place == HONE_PLACE_ABSENT) return HONE_NETWORK_OK;
  uint64_t offset = tensor->offset, bytes;
  HoneGpuMemory buffer;
  if (tensor->place == HONE_PLACE_WEIGHTS) {
    const HonePlanPiece* const piece = hone_plan_piece(plan, offset, tensor->bytes);
    buffer = network->pieces[piece - plan->pieces];
    bytes = piece->bytes;
    offset -= piece->offset;
  } else {
    const uint32_t b = tensor->place == HONE_PLACE_ARENA   ? arena
                       : tensor->place == HONE_PLACE_INPUT ? tensor->number
                                                           : inputs + tensor->number;
    buffer = work->buffers[b];
    bytes = BufferBytes(&network->network, b, work->packs);
  }
  if (buffer == 0 || bytes == tensor->bytes) {
    work->tensors[number] = buffer;
    return HONE_NETWORK_OK;
  }
  if (offset % network->limits.part_bytes != 0) {
    return hone_fail(HONE_NETWORK_DEVICE,
                     "the device accepts parts of buffers at multiples of %llu bytes, and the "
                     "network has a tensor at %llu",
                     (unsigned long long)network->limits.part_bytes, (unsigned long long)offset);
  }
  const hone_network_status status =
      DriverOf(network)->part(network->gpu, buffer, offset, tensor->bytes, &work->tensors[number]);
  if (status == HONE_NETWORK_OK) work->parts[work->part_count++] = work->tensors[number];
  return status;
}

static void FreeWork(const GpuNetwork* network, Work* work) {
  const HoneGpuDriver* const driver = DriverOf(network);
  const HonePlanHeader* const header = network->network.plan.header;
  driver->free_queue(work->queue);
  for (uint32_t c = 0; c < work->command_count; ++c)
    driver->free_launch(network->gpu, work->commands[c].launch);
  for (uint32_t p = 0; p < work->part_count; ++p) driver->free_part(network->gpu, work->parts[p]);
  for (uint32_t b = 0; work->buffers != NULL && b < BufferCount(header); ++b)
    driver->free(network->gpu, work->buffers[b]);
  free(work->buffers);
  free(work->tensors);
  free(work->parts);
  free(work->commands);
  free(work->begins);
}

static const HonePlanStep* StepOf(const HonePlan* plan, const Work* work, uint32_t number) {
  return &plan->steps[(work->packs ? plan->header->steps : 0) + number];
}
/* The steps of all sizes, or of the packing. */
static uint32_t StepCount(const HonePlan* plan, const Work* work) {
  return work->packs ? plan->header->packing : plan->header->steps;
}
/* The most steps of a run. */
static uint32_t MostSteps(const HonePlan* plan, const Work* work) {
  uint32_t most = 0;
  if (work->packs) return plan->header->packing;
  for (uint32_t p = 0; p < hone_plan_parts(plan); ++p) {
    const uint32_t steps = hone_plan_part(plan, p).steps;
    if (steps > most) most = steps;
  }
  return most;
}

/* Adds the commands of a step. A copy of an empty tensor has none. */
static hone_network_status AddStep(const GpuNetwork* network, Work* work, uint32_t number,
                                   HoneGpuMemory* parameters) {
  const HonePlan* const plan = &network->network.plan;
  const HonePlanStep* const step = StepOf(plan, work, number);
  const uint32_t* const tensors = plan->buffers + step->first_buffer;
  uint32_t count = 0;
  for (; count < step->buffers; ++count) parameters[count] = work->tensors[tensors[count]];
  if (step->kernel == HONE_PLAN_COPY) {
    const uint64_t bytes = plan->tensors[tensors[0]].bytes;
    const Command copy = {NULL, parameters[0], parameters[1], bytes};
    if (bytes > 0) work->commands[work->command_count++] = copy;
    return HONE_NETWORK_OK;
  }
  const HonePlanKernel* const kernel = &plan->kernels[step->kernel];
  const HonePlanPiece* const packed =
      kernel->packed_bytes > 0 ? hone_plan_piece(plan, step->packed_offset, kernel->packed_bytes)
                               : NULL;
  parameters[count++] = packed == NULL ? 0 : network->pieces[packed - plan->pieces];
  parameters[count++] = work->buffers[BufferCount(plan->header) - 1];
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t l = 0; l < kernel->launches && status == HONE_NETWORK_OK; ++l) {
    const HonePlanLaunch* const launch = &plan->launches[kernel->first_launch + l];
    if ((launch->prepack != 0) != work->packs) continue;
    Command* const command = &work->commands[work->command_count++];
    status = DriverOf(network)->new_launch(network->gpu, network->modules[step->kernel],
                                           &network->network, launch, parameters, count,
                                           &command->launch);
  }
  return status;
}

static hone_network_status MakeWork(GpuNetwork* network, Work* work) {
  const HonePlan* const plan = &network->network.plan;
  const uint32_t steps = StepCount(plan, work);
  uint64_t commands = 1;
  uint32_t most = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    const HonePlanStep* const step = StepOf(plan, work, s);
    commands += step->kernel == HONE_PLAN_COPY ? 1 : plan->kernels[step->kernel].launches;
    if (step->buffers > most) most = step->buffers;
  }
  work->buffers = calloc(BufferCount(plan->header), sizeof *work->buffers);
  work->tensors = calloc(plan->header->tensors + 1, sizeof *work->tensors);
  work->parts = calloc(plan->header->tensors + 1, sizeof *work->parts);
  work->commands = calloc(commands, sizeof *work->commands);
  work->begins = calloc((size_t)steps + 1, sizeof *work->begins);
  if (work->buffers == NULL || work->tensors == NULL || work->parts == NULL ||
      work->commands == NULL || work->begins == NULL) {
    return hone_fail_memory();
  }
  hone_network_status status =
      DriverOf(network)->new_queue(network->gpu, MostSteps(plan, work), &work->queue);
  for (uint32_t b = 0; b < BufferCount(plan->header) && status == HONE_NETWORK_OK; ++b) {
    const uint64_t bytes = BufferBytes(&network->network, b, work->packs);
    if (bytes > 0) status = Allocate(network, bytes, &work->buffers[b]);
    work->bytes += bytes;
  }
  for (uint32_t t = 0; t < plan->header->tensors && status == HONE_NETWORK_OK; ++t)
    status = PlaceTensor(network, work, t);
  HoneGpuMemory* const parameters = malloc(((size_t)most + 2) * sizeof *parameters);
  if (parameters == NULL) return hone_fail_memory();
  for (uint32_t s = 0; s < steps && status == HONE_NETWORK_OK; ++s) {
    status = AddStep(network, work, s, parameters);
    work->begins[s + 1] = work->command_count;
  }
  free(parameters);
  return status;
}

/* Puts the commands of these steps into the queue. */
static hone_network_status PutSteps(const GpuNetwork* network, const Work* work, uint32_t first,
                                    uint32_t steps) {
  const HoneGpuDriver* const driver = DriverOf(network);
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t s = 0; s < steps && status == HONE_NETWORK_OK; ++s) {
    const Command* const end = work->commands + work->begins[first + s + 1];
    status = driver->begin_step(work->queue, s);
    for (const Command* command = work->commands + work->begins[first + s];
         command < end && status == HONE_NETWORK_OK; ++command) {
      status = command->launch != NULL
                   ? driver->launch(work->queue, command->launch)
                   : driver->copy(work->queue, command->from, command->to, command->bytes);
    }
  }
  return status == HONE_NETWORK_OK ? driver->begin_step(work->queue, steps) : status;
}

/* Copies the weights to the device and packs them there. */
static hone_network_status LoadWeights(GpuNetwork* network, Work* packing) {
  const HoneGpuDriver* const driver = DriverOf(network);
  const hone_network* const base = &network->network;
  const HonePlan* const plan = &base->plan;
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t p = 0; p < plan->header->pieces && status == HONE_NETWORK_OK; ++p)
    status = Allocate(network, plan->pieces[p].bytes, &network->pieces[p]);
  if (status == HONE_NETWORK_OK) status = MakeWork(network, packing);
  if (status != HONE_NETWORK_OK) return status;
  driver->start(packing->queue, /*timed=*/0);
  for (uint32_t p = 0; p < plan->header->pieces && status == HONE_NETWORK_OK; ++p) {
    const HonePlanPiece* const piece = &plan->pieces[p];
    if (piece->offset >= plan->header->weights_bytes) continue;
    status = driver->write(packing->queue, network->pieces[p], base->weights + piece->offset,
                           piece->bytes);
  }
  if (status == HONE_NETWORK_OK) status = PutSteps(network, packing, 0, plan->header->packing);
  const hone_network_status finished = driver->finish(packing->queue, 0, NULL);
  return status == HONE_NETWORK_OK ? finished : status;
}

/* The number in the environment. */
static int32_t WantedDevice(void) {
  int32_t number = 0;
  for (const char* digit = getenv("HONE_DEVICE");
       digit != NULL && *digit >= '0' && *digit <= '9' && number < 1000000; ++digit) {
    number = 10 * number + (*digit - '0');
  }
  return number;
}

/* Compares a launch with the limits of the device, which may be another one than that for which the
 * kernel was compiled. */
static hone_network_status CheckLaunch(const GpuNetwork* network, const HonePlanLaunch* launch) {
  const HoneGpuLimits* const limits = &network->limits;
  const uint32_t* const block = launch->block;
  const struct {
    uint64_t wanted, allowed;
    const char* what;
  } checks[] = {
      {(uint64_t)block[0] * block[1] * block[2], limits->threads, "threads in a block"},
      {block[0], limits->block[0], "threads of a block in dimension x"},
      {block[1], limits->block[1], "threads of a block in dimension y"},
      {block[2], limits->block[2], "threads of a block in dimension z"},
      {launch->grid[0], limits->grid[0], "blocks in dimension x"},
      {launch->grid[1], limits->grid[1], "blocks in dimension y"},
      {launch->grid[2], limits->grid[2], "blocks in dimension z"},
      {launch->shared_bytes, limits->shared_bytes, "bytes of shared memory in a block"},
  };
  for (size_t c = 0; c < sizeof checks / sizeof *checks; ++c) {
    if (checks[c].wanted <= checks[c].allowed) continue;
    return hone_fail(HONE_NETWORK_DEVICE,
                     "kernel '%s' needs %llu %s, but the device '%s' allows at most %llu; tune and "
                     "export the network for this device",
                     hone_text(&network->network, launch->name),
                     (unsigned long long)checks[c].wanted, checks[c].what, limits->device,
                     (unsigned long long)checks[c].allowed);
  }
  return HONE_NETWORK_OK;
}

static hone_network_status Open(hone_network* base, int32_t device) {
  GpuNetwork* const network = (GpuNetwork*)base;
  const HoneGpuDriver* const driver = DriverOf(network);
  const HonePlanHeader* const header = base->plan.header;
  hone_network_status status = hone_network_verify(base); /* before the weights leave the host */
  if (status != HONE_NETWORK_OK) return status;
  network->modules = calloc(header->kernels + 1, sizeof *network->modules);
  network->pieces = calloc(header->pieces + 1, sizeof *network->pieces);
  if (network->modules == NULL || network->pieces == NULL) return hone_fail_memory();
  status = driver->open(device < 0 ? WantedDevice() : device, &network->gpu, &network->limits);
  for (uint32_t l = 0; l < header->launches && status == HONE_NETWORK_OK; ++l)
    status = CheckLaunch(network, &base->plan.launches[l]);
  if (status != HONE_NETWORK_OK) return status;
  driver->enter(network->gpu);
  for (uint32_t k = 0; k < header->kernels && status == HONE_NETWORK_OK; ++k)
    status = driver->load(network->gpu, base, &base->plan.kernels[k], &network->modules[k]);
  Work packing = {.packs = 1};
  if (status == HONE_NETWORK_OK) {
    status = LoadWeights(network, &packing);
    FreeWork(network, &packing);
  }
  for (uint32_t p = 0; p < header->pieces; ++p) {
    if (!base->plan.pieces[p].only_for_packing) continue;
    driver->free(network->gpu, network->pieces[p]);
    network->pieces[p] = 0;
  }
  driver->leave(network->gpu);
  hone_weights_free(base->weights, header->weights_bytes);
  base->weights = NULL;
  return status;
}

static void Close(hone_network* base) {
  GpuNetwork* const network = (GpuNetwork*)base;
  const HoneGpuDriver* const driver = DriverOf(network);
  if (network->gpu != NULL) {
    driver->enter(network->gpu);
    for (uint32_t k = 0; k < base->plan.header->kernels; ++k)
      driver->unload(network->gpu, network->modules[k]);
    for (uint32_t p = 0; p < base->plan.header->pieces; ++p)
      driver->free(network->gpu, network->pieces[p]);
    driver->leave(network->gpu);
    driver->close(network->gpu);
  }
  free(network->modules);
  free(network->pieces);
}

/* Records the steps of each size once, so that a run launches them at once. */
static void RecordGraphs(const GpuNetwork* network, GpuInstance* instance) {
  const HoneGpuDriver* const driver = DriverOf(network);
  const HonePlan* const plan = &network->network.plan;
  HoneGpuQueue* const queue = instance->work.queue;
  if (driver->begin_graph == NULL) return;
  driver->start(queue, /*timed=*/0);
  for (uint32_t p = 0; p < hone_plan_parts(plan); ++p) {
    const HonePlanSize part = hone_plan_part(plan, p);
    if (part.steps == 0) continue;
    if (!driver->begin_graph(queue)) return;
    const hone_network_status put = PutSteps(network, &instance->work, part.first_step, part.steps);
    HoneGpuGraph* const graph = driver->end_graph(queue);
    if (put == HONE_NETWORK_OK) {
      instance->graphs[p] = graph;
    } else {
      driver->free_graph(network->gpu, graph);
    }
  }
}

/* Makes the copies of a network with sizes that pad. */
static hone_network_status MakeCopies(const GpuNetwork* network, GpuInstance* instance) {
  const HonePlan* const plan = &network->network.plan;
  const uint32_t ends = plan->header->inputs + plan->header->outputs;
  uint64_t bytes = 0;
  int pads = 0;
  for (uint32_t k = 0; k < plan->header->sizes; ++k) pads |= plan->sizes[k].pads != 0;
  if (!pads) return HONE_NETWORK_OK;
  for (uint32_t e = 0; e < ends; ++e) bytes += hone_most_bytes(&network->network, e);
  instance->copies = calloc(ends + 1, sizeof *instance->copies);
  instance->memory = malloc(bytes + 1);
  if (instance->copies == NULL || instance->memory == NULL) return hone_fail_memory();
  char* copy = instance->memory;
  for (uint32_t e = 0; e < ends; ++e) {
    instance->copies[e] = copy;
    copy += hone_most_bytes(&network->network, e);
  }
  return HONE_NETWORK_OK;
}

static hone_network_status NewInstance(hone_network_instance* base) {
  GpuInstance* const instance = (GpuInstance*)base;
  GpuNetwork* const network = (GpuNetwork*)base->network;
  instance->graphs = calloc(hone_plan_parts(&network->network.plan), sizeof *instance->graphs);
  if (instance->graphs == NULL) return hone_fail_memory();
  hone_network_status status = MakeCopies(network, instance);
  if (status != HONE_NETWORK_OK) return status;
  DriverOf(network)->enter(network->gpu);
  status = MakeWork(network, &instance->work);
  if (status == HONE_NETWORK_OK) RecordGraphs(network, instance);
  DriverOf(network)->leave(network->gpu);
  base->bytes = instance->work.bytes;
  return status;
}

static void FreeInstance(hone_network_instance* base) {
  GpuInstance* const instance = (GpuInstance*)base;
  const GpuNetwork* const network = (const GpuNetwork*)base->network;
  const HoneGpuDriver* const driver = DriverOf(network);
  driver->enter(network->gpu);
  for (uint32_t p = 0; instance->graphs != NULL && p < hone_plan_parts(&network->network.plan); ++p)
    if (instance->graphs[p] != NULL) driver->free_graph(network->gpu, instance->graphs[p]);
  FreeWork(network, &instance->work);
  driver->leave(network->gpu);
  free(instance->graphs);
  free(instance->copies);
  free(instance->memory);
}

/* Pads the inputs of a value between the sizes. */
static void PadInputs(const GpuInstance* instance, const void* const* inputs) {
  const hone_network_instance* const base = &instance->instance;
  for (uint32_t i = 0; i < base->network->plan.header->inputs; ++i)
    if (hone_is_padded(base, i)) hone_pad_input(base, i, inputs[i], instance->copies[i]);
}

/* What the device gets as an input: the caller's buffer, or its padded copy. */
static const char* InputOf(const GpuInstance* instance, const void* const* inputs, uint32_t i) {
  return hone_is_padded(&instance->instance, i) ? instance->copies[i] : inputs[i];
}

/* Indices that the network computes stay on the device, where kernels clamp them. */
static hone_network_status CheckInputs(const GpuInstance* instance, const void* const* inputs) {
  const hone_network* const network = instance->instance.network;
  const HonePlan* const plan = &network->plan;
  const HonePlanSize part = hone_plan_part(plan, instance->instance.part);
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t s = 0; s < part.steps; ++s) {
    const HonePlanStep* const step = &plan->steps[part.first_step + s];
    for (uint32_t c = 0; c < step->checks && status == HONE_NETWORK_OK; ++c) {
      const HonePlanCheck* const check = &plan->checks[step->first_check + c];
      const HonePlanTensor* const tensor = &plan->tensors[check->tensor];
      if (tensor->place != HONE_PLACE_INPUT || tensor->bytes == 0) continue;
      status = hone_check_indices(network, step, check,
                                  InputOf(instance, inputs, tensor->number) + tensor->offset);
    }
  }
  return status;
}

static hone_network_status PutRun(const GpuNetwork* network, const GpuInstance* instance,
                                  const void* const* inputs, void* const* outputs, int timed) {
  const HoneGpuDriver* const driver = DriverOf(network);
  const hone_network* const base = &network->network;
  const HonePlanHeader* const header = base->plan.header;
  const uint32_t number = instance->instance.part;
  const HonePlanSize part = hone_plan_part(&base->plan, number);
  const Work* const work = &instance->work;
  hone_network_status status = HONE_NETWORK_OK;
  for (uint32_t i = 0; i < header->inputs && status == HONE_NETWORK_OK; ++i) {
    const uint64_t bytes = hone_input_of(base, number, i)->bytes;
    if (bytes > 0)
      status = driver->write(work->queue, work->buffers[i], InputOf(instance, inputs, i), bytes);
  }
  if (status == HONE_NETWORK_OK) {
    status = instance->graphs[number] != NULL && !timed
                 ? driver->run_graph(work->queue, instance->graphs[number])
                 : PutSteps(network, work, part.first_step, part.steps);
  }
  for (uint32_t o = 0; o < header->outputs && status == HONE_NETWORK_OK; ++o) {
    const uint32_t end = header->inputs + o;
    const uint64_t bytes = hone_output_of(base, number, o)->bytes;
    void* const to = hone_is_padded(&instance->instance, end) ? instance->copies[end] : outputs[o];
    if (bytes > 0) status = driver->read(work->queue, work->buffers[end], to, bytes);
  }
  return status;
}

static hone_network_status Run(hone_network_instance* base, const void* const* inputs,
                               void* const* outputs, int64_t* step_ns) {
  const GpuInstance* const instance = (const GpuInstance*)base;
  const GpuNetwork* const network = (const GpuNetwork*)base->network;
  const HonePlan* const plan = &base->network->plan;
  const HoneGpuDriver* const driver = DriverOf(network);
  PadInputs(instance, inputs);
  hone_network_status status = CheckInputs(instance, inputs);
  if (status != HONE_NETWORK_OK) return status;
  driver->enter(network->gpu);
  driver->start(instance->work.queue, step_ns != NULL);
  status = PutRun(network, instance, inputs, outputs, step_ns != NULL);
  /* Even after an error, because the device may still use the caller's memory. */
  const hone_network_status finished =
      driver->finish(instance->work.queue, hone_plan_part(plan, base->part).steps,
                     status == HONE_NETWORK_OK ? step_ns : NULL);
  driver->leave(network->gpu);
  if (status == HONE_NETWORK_OK) status = finished;
  if (status != HONE_NETWORK_OK)
    return hone_fail_while(status, "the device failed while it ran the network");
  for (uint32_t o = 0; o < plan->header->outputs; ++o) {
    const uint32_t end = plan->header->inputs + o;
    if (hone_is_padded(base, end)) hone_unpad_output(base, o, instance->copies[end], outputs[o]);
  }
  return HONE_NETWORK_OK;
}

/* One table for each driver, so that a linker leaves out the other one. */
#define BACKEND(name, its_driver)            \
  const HoneBackend name = {                 \
      .network_bytes = sizeof(GpuNetwork),   \
      .instance_bytes = sizeof(GpuInstance), \
      .driver = &(its_driver),               \
      .open = Open,                          \
      .close = Close,                        \
      .new_instance = NewInstance,           \
      .free_instance = FreeInstance,         \
      .run = Run,                            \
  }
BACKEND(hone_cuda_backend, hone_cuda_driver);
BACKEND(hone_opencl_backend, hone_opencl_driver);
