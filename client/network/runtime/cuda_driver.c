/* Networks on CUDA's driver API. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "client/network/runtime/gpu_driver.h"
#include "common/target/cuda/driver_functions.h"

enum {
  kOutOfMemory = 2,
  kNoBinaryForGpu = 209,
  kCommonSharedBytes = 48 << 10, /* a launch gets more only on request */
  kPartBytes = 16                /* of the widest access, which must be aligned */
};

struct HoneGpu {
#define MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__);
  HONE_CUDA_FUNCTIONS(MEMBER)
#undef MEMBER
  Context context;
};

struct HoneGpuQueue {
  HoneGpu* gpu;
  Stream stream;
  int timed;
  uint32_t steps;
  Event events[]; /* before each step, and after the last one; null until a run is timed */
};

struct HoneGpuLaunch {
  Function function;
  const HonePlanLaunch* planned;
  const char* name;
  unsigned dynamic_bytes;
  void** parameters; /* addresses of the values */
  HoneGpuMemory values[];
};

static hone_network_status Check(const HoneGpu* gpu, Result code, const char* what) {
  if (code == 0) return HONE_NETWORK_OK;
  const char* name = NULL;
  gpu->GetErrorName(code, &name);
  return hone_fail(code == kOutOfMemory ? HONE_NETWORK_OUT_OF_MEMORY : HONE_NETWORK_DEVICE,
                   "%s: %s (error %d of CUDA)", what, name == NULL ? "unknown" : name, code);
}

static hone_network_status LoadFunctions(HoneGpu* gpu) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    return hone_fail(HONE_NETWORK_DEVICE, "CUDA cannot be used: %s; install NVIDIA's driver",
                     dlerror());
  }
#define LOAD(name, symbol, ...)                                                             \
  *(void**)&gpu->name = dlsym(library, #symbol);                                            \
  if (gpu->name == NULL) {                                                                  \
    return hone_fail(HONE_NETWORK_DEVICE, "libcuda.so.1 has no %s; install a newer driver", \
                     #symbol);                                                              \
  }
  HONE_CUDA_FUNCTIONS(LOAD)
#undef LOAD
  return Check(gpu, gpu->Init(0), "start the driver of CUDA");
}

static hone_network_status ReadLimits(const HoneGpu* gpu, int device, HoneGpuLimits* limits) {
  const struct {
    int attribute;
    uint64_t* limit;
  } all[] = {
      {kMaxThreadsPerBlock, &limits->threads},
      {kMaxBlockDimX, &limits->block[0]},
      {kMaxBlockDimX + 1, &limits->block[1]},
      {kMaxBlockDimX + 2, &limits->block[2]},
      {kMaxGridDimX, &limits->grid[0]},
      {kMaxGridDimX + 1, &limits->grid[1]},
      {kMaxGridDimX + 2, &limits->grid[2]},
      {kMaxSharedMemoryPerBlockOptin, &limits->shared_bytes},
  };
  limits->part_bytes = kPartBytes;
  memset(limits->device, 0, sizeof limits->device);
  hone_network_status status = Check(
      gpu, gpu->DeviceGetName(limits->device, sizeof limits->device - 1, device), "name the GPU");
  for (char* c = limits->device; *c != '\0'; ++c)
    if (*c < ' ' || *c > '~') *c = '?';
  for (size_t l = 0; l < sizeof all / sizeof *all && status == HONE_NETWORK_OK; ++l) {
    int value = 0;
    status = Check(gpu, gpu->DeviceGetAttribute(&value, all[l].attribute, device),
                   "ask for the limits of the GPU");
    *all[l].limit = value > 0 ? (uint64_t)value : 0;
  }
  return status;
}

static hone_network_status Open(int32_t device, HoneGpu** gpu, HoneGpuLimits* limits) {
  HoneGpu* const opened = calloc(1, sizeof *opened);
  if (opened == NULL) return hone_fail_memory();
  int count = 0, found = 0;
  hone_network_status status = LoadFunctions(opened);
  if (status == HONE_NETWORK_OK)
    status = Check(opened, opened->DeviceGetCount(&count), "count the GPUs");
  if (status == HONE_NETWORK_OK && device >= count) {
    status = hone_fail(HONE_NETWORK_DEVICE, "there is no GPU %d; this machine has %d for CUDA",
                       (int)device, count);
  }
  if (status == HONE_NETWORK_OK)
    status = Check(opened, opened->DeviceGet(&found, device), "find the GPU");
  if (status == HONE_NETWORK_OK) status = ReadLimits(opened, found, limits);
  if (status == HONE_NETWORK_OK) {
    status = Check(opened, opened->CtxCreate(&opened->context, 0, found), "use the GPU");
    if (status == HONE_NETWORK_OK) opened->CtxPopCurrent(&opened->context);
  }
  *gpu = status == HONE_NETWORK_OK ? opened : NULL;
  if (*gpu == NULL) free(opened);
  return status;
}

static void Close(HoneGpu* gpu) {
  gpu->CtxDestroy(gpu->context);
  free(gpu);
}

static void Enter(HoneGpu* gpu) { gpu->CtxPushCurrent(gpu->context); }

static void Leave(HoneGpu* gpu) {
  Context left;
  gpu->CtxPopCurrent(&left);
}

static hone_network_status Allocate(HoneGpu* gpu, uint64_t bytes, HoneGpuMemory* memory) {
  return Check(gpu, gpu->MemAlloc(memory, bytes), "make a buffer");
}

static void Free(HoneGpu* gpu, HoneGpuMemory memory) {
  if (memory != 0) gpu->MemFree(memory);
}

static hone_network_status Part(HoneGpu* gpu, HoneGpuMemory buffer, uint64_t offset, uint64_t bytes,
                                HoneGpuMemory* part) {
  (void)gpu;
  (void)bytes;
  *part = buffer + offset;
  return HONE_NETWORK_OK;
}

static void FreePart(HoneGpu* gpu, HoneGpuMemory part) {
  (void)gpu;
  (void)part;
}

static hone_network_status Load(HoneGpu* gpu, const hone_network* network,
                                const HonePlanKernel* kernel, HoneGpuModule** module) {
  const char* const code = network->plan.code;
  Module loaded = NULL;
  Result result = gpu->ModuleLoadData(&loaded, code + kernel->code.offset);
  if (result == kNoBinaryForGpu && kernel->portable.bytes > 0)
    result = gpu->ModuleLoadData(&loaded, code + kernel->portable.offset);
  *module = (HoneGpuModule*)loaded;
  if (result == 0) return HONE_NETWORK_OK;
  *module = NULL;
  return hone_fail_while(Check(gpu, result, "load the code"), "the kernel of %s",
                         hone_text(network, kernel->name));
}

static void Unload(HoneGpu* gpu, HoneGpuModule* module) {
  if (module != NULL) gpu->ModuleUnload((Module)module);
}

/* Sets the shared memory that launches must ask for: what the code does not declare itself. The
 * function keeps the most that one of its launches needs. */
static hone_network_status Reserve(HoneGpu* gpu, HoneGpuLaunch* launch) {
  const HonePlanLaunch* const planned = launch->planned;
  int declared = 0, most = 0, reserved = 0;
  hone_network_status status = Check(
      gpu, gpu->FuncGetAttribute(&declared, kFunctionSharedBytes, launch->function), launch->name);
  if (status == HONE_NETWORK_OK)
    status = Check(gpu, gpu->FuncGetAttribute(&most, kFunctionMaxThreadsPerBlock, launch->function),
                   launch->name);
  if (status != HONE_NETWORK_OK) return status;
  const uint64_t threads = (uint64_t)planned->block[0] * planned->block[1] * planned->block[2];
  if (threads > (uint64_t)most) {
    return hone_fail(HONE_NETWORK_DEVICE,
                     "kernel '%s' has blocks of %llu threads, but the device has registers for "
                     "only %d",
                     launch->name, (unsigned long long)threads, most);
  }
  if (planned->shared_bytes > (uint64_t)declared)
    launch->dynamic_bytes = (unsigned)(planned->shared_bytes - (uint64_t)declared);
  if (planned->shared_bytes <= kCommonSharedBytes) return HONE_NETWORK_OK;
  status =
      Check(gpu, gpu->FuncGetAttribute(&reserved, kFunctionMaxDynamicSharedBytes, launch->function),
            launch->name);
  if (status != HONE_NETWORK_OK || launch->dynamic_bytes <= (unsigned)reserved) return status;
  return Check(gpu,
               gpu->FuncSetAttribute(launch->function, kFunctionMaxDynamicSharedBytes,
                                     (int)launch->dynamic_bytes),
               "reserve shared memory");
}

static void FreeLaunch(HoneGpu* gpu, HoneGpuLaunch* launch) {
  (void)gpu;
  if (launch == NULL) return;
  free(launch->parameters);
  free(launch);
}

static hone_network_status NewLaunch(HoneGpu* gpu, HoneGpuModule* module,
                                     const hone_network* network, const HonePlanLaunch* launch,
                                     const HoneGpuMemory* parameters, uint32_t count,
                                     HoneGpuLaunch** made) {
  HoneGpuLaunch* const added = calloc(1, sizeof *added + count * sizeof *added->values);
  if (added == NULL) return hone_fail_memory();
  added->planned = launch;
  added->name = hone_text(network, launch->name);
  added->parameters = calloc(count, sizeof *added->parameters);
  hone_network_status status =
      added->parameters == NULL
          ? hone_fail_memory()
          : Check(gpu, gpu->ModuleGetFunction(&added->function, (Module)module, added->name),
                  added->name);
  if (status == HONE_NETWORK_OK) status = Reserve(gpu, added);
  for (uint32_t p = 0; p < count && status == HONE_NETWORK_OK; ++p) {
    added->values[p] = parameters[p];
    added->parameters[p] = &added->values[p];
  }
  if (status == HONE_NETWORK_OK) {
    *made = added;
  } else {
    FreeLaunch(gpu, added);
  }
  return status;
}

static void FreeQueue(HoneGpuQueue* queue) {
  if (queue == NULL) return;
  const HoneGpu* const gpu = queue->gpu;
  for (uint32_t e = 0; e <= queue->steps; ++e)
    if (queue->events[e] != NULL) gpu->EventDestroy(queue->events[e]);
  if (queue->stream != NULL) gpu->StreamDestroy(queue->stream);
  free(queue);
}

static hone_network_status NewQueue(HoneGpu* gpu, uint32_t steps, HoneGpuQueue** queue) {
  HoneGpuQueue* const made = calloc(1, sizeof *made + ((size_t)steps + 1) * sizeof(Event));
  if (made == NULL) return hone_fail_memory();
  made->gpu = gpu;
  made->steps = steps;
  *queue = made;
  return Check(gpu, gpu->StreamCreate(&made->stream, kStreamNonBlocking), "make a stream");
}

static void Start(HoneGpuQueue* queue, int timed) { queue->timed = timed; }

static hone_network_status BeginStep(HoneGpuQueue* queue, uint32_t step) {
  if (!queue->timed) return HONE_NETWORK_OK;
  const HoneGpu* const gpu = queue->gpu;
  if (queue->events[step] == NULL) {
    const hone_network_status status =
        Check(gpu, gpu->EventCreate(&queue->events[step], 0), "make an event");
    if (status != HONE_NETWORK_OK) return status;
  }
  return Check(gpu, gpu->EventRecord(queue->events[step], queue->stream), "record an event");
}

static hone_network_status Write(HoneGpuQueue* queue, HoneGpuMemory to, const void* from,
                                 uint64_t bytes) {
  return Check(queue->gpu, queue->gpu->MemcpyHtoDAsync(to, from, bytes, queue->stream),
               "write a buffer");
}

static hone_network_status Read(HoneGpuQueue* queue, HoneGpuMemory from, void* to, uint64_t bytes) {
  return Check(queue->gpu, queue->gpu->MemcpyDtoHAsync(to, from, bytes, queue->stream),
               "read a buffer");
}

static hone_network_status Copy(HoneGpuQueue* queue, HoneGpuMemory from, HoneGpuMemory to,
                                uint64_t bytes) {
  return Check(queue->gpu, queue->gpu->MemcpyDtoDAsync(to, from, bytes, queue->stream),
               "copy a buffer");
}

static hone_network_status Launch(HoneGpuQueue* queue, HoneGpuLaunch* launch) {
  const uint32_t* const grid = launch->planned->grid;
  const uint32_t* const block = launch->planned->block;
  return Check(queue->gpu,
               queue->gpu->LaunchKernel(launch->function, grid[0], grid[1], grid[2], block[0],
                                        block[1], block[2], launch->dynamic_bytes, queue->stream,
                                        launch->parameters, NULL),
               launch->name);
}

static hone_network_status Finish(HoneGpuQueue* queue, uint32_t steps, int64_t* step_ns) {
  const HoneGpu* const gpu = queue->gpu;
  /* Faults of kernels are reported here, or by any of the calls before. */
  hone_network_status status =
      Check(gpu, gpu->StreamSynchronize(queue->stream), "wait for the kernels");
  for (uint32_t s = 0; step_ns != NULL && s < steps && status == HONE_NETWORK_OK; ++s) {
    float milliseconds = 0;
    status =
        Check(gpu, gpu->EventElapsedTime(&milliseconds, queue->events[s], queue->events[s + 1]),
              "read the time of events");
    step_ns[s] = (int64_t)(1e6 * (double)milliseconds);
  }
  return status;
}

static int BeginGraph(HoneGpuQueue* queue) {
  return queue->gpu->StreamBeginCapture(queue->stream, kCaptureThreadLocal) == 0;
}

static HoneGpuGraph* EndGraph(HoneGpuQueue* queue) {
  Graph graph = NULL;
  GraphExec made = NULL;
  if (queue->gpu->StreamEndCapture(queue->stream, &graph) != 0 ||
      queue->gpu->GraphInstantiate(&made, graph, 0) != 0) {
    made = NULL;
  }
  if (graph != NULL) queue->gpu->GraphDestroy(graph);
  return (HoneGpuGraph*)made;
}

static hone_network_status RunGraph(HoneGpuQueue* queue, HoneGpuGraph* graph) {
  return Check(queue->gpu, queue->gpu->GraphLaunch((GraphExec)graph, queue->stream),
               "launch a graph");
}

static void FreeGraph(HoneGpu* gpu, HoneGpuGraph* graph) {
  if (graph != NULL) gpu->GraphExecDestroy((GraphExec)graph);
}

const HoneGpuDriver hone_cuda_driver = {
    .open = Open,
    .close = Close,
    .enter = Enter,
    .leave = Leave,
    .allocate = Allocate,
    .free = Free,
    .part = Part,
    .free_part = FreePart,
    .load = Load,
    .unload = Unload,
    .new_launch = NewLaunch,
    .free_launch = FreeLaunch,
    .new_queue = NewQueue,
    .free_queue = FreeQueue,
    .start = Start,
    .begin_step = BeginStep,
    .write = Write,
    .read = Read,
    .copy = Copy,
    .launch = Launch,
    .finish = Finish,
    .begin_graph = BeginGraph,
    .end_graph = EndGraph,
    .run_graph = RunGraph,
    .free_graph = FreeGraph,
};
