/* Networks on OpenCL 1.2. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/network/runtime/gpu_driver.h"
#include "common/target/opencl/functions.h"

enum {
  kMost = 256,          /* drivers; devices of a driver */
  kMostText = 1 << 20,  /* bytes that a driver may tell */
  kName = 128,          /* bytes of a name that are kept */
  kMostDimensions = 64, /* of a block */
};

struct HoneGpu {
#define MEMBER(name) __typeof__(&cl##name) name;
  HONE_OPENCL_FUNCTIONS(MEMBER)
#undef MEMBER
  cl_device_id device;
  cl_context context;
};

/* Of the first and of the last command of a step. */
typedef struct Events {
  cl_event first, last;
} Events;

struct HoneGpuQueue {
  HoneGpu* gpu;
  cl_command_queue queue;
  int timed;
  struct timespec begin;
  uint32_t steps;
  uint32_t step;   /* that has the next commands */
  cl_event last;   /* of the last read */
  Events events[]; /* of each step of a run that is timed */
};

struct HoneGpuLaunch {
  cl_kernel kernel;
  const char* name;
  size_t items[3], block[3];
};

/* A buffer is a pointer. */
static cl_mem Of(HoneGpuMemory memory) { return (cl_mem)(uintptr_t)memory; }

static hone_network_status Check(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return HONE_NETWORK_OK;
  const int is_memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
                        code == CL_INVALID_BUFFER_SIZE;
  return hone_fail(is_memory ? HONE_NETWORK_OUT_OF_MEMORY : HONE_NETWORK_DEVICE,
                   "%s: error %d of OpenCL", what, (int)code);
}

static hone_network_status LoadFunctions(HoneGpu* gpu) {
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    return hone_fail(HONE_NETWORK_DEVICE,
                     "OpenCL cannot be used: %s; install ocl-icd-libopencl1 and a driver",
                     dlerror());
  }
#define LOAD(name)                                                                         \
  *(void**)&gpu->name = dlsym(library, "cl" #name);                                        \
  if (gpu->name == NULL) {                                                                 \
    return hone_fail(HONE_NETWORK_DEVICE, "libOpenCL.so.1 has no %s; install a newer one", \
                     "cl" #name);                                                          \
  }
  HONE_OPENCL_FUNCTIONS(LOAD)
#undef LOAD
  return HONE_NETWORK_OK;
}

/* The devices are numbered as common/target/opencl/detect.cc numbers them: GPUs first, CPUs last,
 * then by the names of the driver and of the device. Those that lack a text or a compiler are left
 * out. */
typedef struct Found {
  cl_device_id device;
  int rank;
  char names[2][kName + 1]; /* of the driver and of the device */
} Found;

static int IsBefore(const Found* a, const Found* b) {
  if (a->rank != b->rank) return a->rank < b->rank;
  const int order = strcmp(a->names[0], b->names[0]);
  return order != 0 ? order < 0 : strcmp(a->names[1], b->names[1]) < 0;
}

/* A property of a device or, if this is null, of a driver. */
static cl_int Ask(const HoneGpu* gpu, cl_platform_id platform, cl_device_id device, cl_uint what,
                  size_t size, void* to, size_t* bytes) {
  return device == NULL ? gpu->GetPlatformInfo(platform, what, size, to, bytes)
                        : gpu->GetDeviceInfo(device, what, size, to, bytes);
}

/* Reads a text in printable ASCII, without spaces around it. Returns 0 if the driver has none. */
static int ReadText(const HoneGpu* gpu, cl_platform_id platform, cl_device_id device, cl_uint what,
                    char text[kName + 1]) {
  size_t bytes = 0;
  if (Ask(gpu, platform, device, what, 0, NULL, &bytes) != CL_SUCCESS || bytes > kMostText)
    return 0;
  char* const all = calloc(bytes + 1, 1);
  const int is_read =
      all != NULL && Ask(gpu, platform, device, what, bytes, all, NULL) == CL_SUCCESS;
  if (is_read) {
    size_t end = strlen(all), begin = 0;
    if (end > kName) end = kName;
    for (size_t c = 0; c < end; ++c) {
      if (all[c] < ' ' || all[c] > '~') all[c] = '?';
    }
    while (end > 0 && all[end - 1] == ' ') --end;
    while (begin < end && all[begin] == ' ') ++begin;
    memcpy(text, all + begin, end - begin);
    text[end - begin] = '\0';
  }
  free(all);
  return is_read;
}

/* A number of a device; `otherwise` if its driver does not know it. */
static uint64_t Number(const HoneGpu* gpu, cl_device_id device, cl_device_info what, size_t size,
                       uint64_t otherwise) {
  uint64_t value = 0; /* little-endian: its first bytes */
  size_t bytes = 0;
  return gpu->GetDeviceInfo(device, what, size, &value, &bytes) == CL_SUCCESS && bytes == size
             ? value
             : otherwise;
}

/* Fills in what a device is ordered by. Returns 0 if it cannot be used. */
static int Describe(const HoneGpu* gpu, Found* found) {
  static const cl_device_info texts[] = {CL_DEVICE_VENDOR, CL_DRIVER_VERSION, CL_DEVICE_EXTENSIONS,
                                         CL_DEVICE_NAME}; /* the last one is kept */
  for (size_t t = 0; t < sizeof texts / sizeof *texts; ++t) {
    if (!ReadText(gpu, NULL, found->device, texts[t], found->names[1])) return 0;
  }
  const uint64_t type =
      Number(gpu, found->device, CL_DEVICE_TYPE, sizeof(cl_device_type), /*otherwise=*/0);
  found->rank = (type & CL_DEVICE_TYPE_GPU) != 0 ? 0 : (type & CL_DEVICE_TYPE_CPU) != 0 ? 2 : 1;
  return Number(gpu, found->device, CL_DEVICE_AVAILABLE, sizeof(cl_bool), CL_TRUE) &&
         Number(gpu, found->device, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool), CL_TRUE);
}

/* Adds the devices of a driver that can be used, in order. Returns the number of all. */
static uint32_t AddDevices(const HoneGpu* gpu, cl_platform_id platform, Found* found,
                           uint32_t count) {
  cl_device_id devices[kMost];
  cl_uint most = 0;
  if (gpu->GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, kMost, devices, &most) != CL_SUCCESS)
    return count;
  Found next = {.names = {"driver"}};
  ReadText(gpu, platform, NULL, CL_PLATFORM_NAME, next.names[0]);
  for (cl_uint d = 0; d < most && d < kMost; ++d) {
    next.device = devices[d];
    if (!Describe(gpu, &next)) continue;
    uint32_t at = count++;
    for (; at > 0 && IsBefore(&next, &found[at - 1]); --at) found[at] = found[at - 1];
    found[at] = next;
  }
  return count;
}

static hone_network_status FindDevice(HoneGpu* gpu, int32_t device, HoneGpuLimits* limits) {
  cl_platform_id platforms[kMost];
  cl_uint platform_count = 0;
  if (gpu->GetPlatformIDs(kMost, platforms, &platform_count) != CL_SUCCESS) platform_count = 0;
  if (platform_count > kMost) platform_count = kMost;
  Found* const found = calloc((size_t)platform_count * kMost + 1, sizeof *found);
  if (found == NULL) return hone_fail_memory();
  uint32_t count = 0;
  for (cl_uint p = 0; p < platform_count; ++p) count = AddDevices(gpu, platforms[p], found, count);
  hone_network_status status = HONE_NETWORK_OK;
  if ((uint32_t)device < count) {
    gpu->device = found[device].device;
    memcpy(limits->device, found[device].names[1], sizeof limits->device);
  } else {
    status =
        hone_fail(HONE_NETWORK_DEVICE,
                  count == 0 ? "there is no OpenCL device %d: no driver has one; install a driver"
                             : "there is no OpenCL device %d; this machine has %u",
                  (int)device, (unsigned)count);
  }
  free(found);
  return status;
}

/* A launch may have any number of blocks. */
static void ReadLimits(const HoneGpu* gpu, HoneGpuLimits* limits) {
  const uint64_t bits =
      Number(gpu, gpu->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint), /*otherwise=*/0);
  limits->part_bytes = bits > 8 ? bits / 8 : 1;
  limits->threads = Number(gpu, gpu->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), 1);
  limits->shared_bytes = Number(gpu, gpu->device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong), 0);
  size_t sizes[kMostDimensions] = {1, 1, 1};
  if (gpu->GetDeviceInfo(gpu->device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL) !=
      CL_SUCCESS) {
    sizes[0] = sizes[1] = sizes[2] = 1;
  }
  for (int d = 0; d < 3; ++d) {
    limits->block[d] = sizes[d];
    limits->grid[d] = UINT32_MAX;
  }
}

static void Close(HoneGpu* gpu) {
  if (gpu->context != NULL) gpu->ReleaseContext(gpu->context);
  free(gpu);
}

static hone_network_status Open(int32_t device, HoneGpu** gpu, HoneGpuLimits* limits) {
  HoneGpu* const opened = calloc(1, sizeof *opened);
  if (opened == NULL) return hone_fail_memory();
  hone_network_status status = LoadFunctions(opened);
  if (status == HONE_NETWORK_OK) status = FindDevice(opened, device, limits);
  if (status == HONE_NETWORK_OK) {
    cl_int code = CL_SUCCESS;
    opened->context = opened->CreateContext(NULL, 1, &opened->device, NULL, NULL, &code);
    status = Check(code, "use the device");
    ReadLimits(opened, limits);
  }
  *gpu = status == HONE_NETWORK_OK ? opened : NULL;
  if (*gpu == NULL) Close(opened);
  return status;
}

static void Enter(HoneGpu* gpu) { (void)gpu; }

/* Drivers report in several ways that a device is out of memory. */
static hone_network_status Allocate(HoneGpu* gpu, uint64_t bytes, HoneGpuMemory* memory) {
  cl_int code = CL_SUCCESS;
  *memory = (uintptr_t)gpu->CreateBuffer(gpu->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  if (code == CL_SUCCESS) return HONE_NETWORK_OK;
  *memory = 0;
  return hone_fail(HONE_NETWORK_OUT_OF_MEMORY,
                   "no memory for a buffer of %llu bytes (error %d of OpenCL)",
                   (unsigned long long)bytes, (int)code);
}

static void Free(HoneGpu* gpu, HoneGpuMemory memory) {
  if (memory != 0) gpu->ReleaseMemObject(Of(memory));
}

static hone_network_status Part(HoneGpu* gpu, HoneGpuMemory buffer, uint64_t offset, uint64_t bytes,
                                HoneGpuMemory* part) {
  const cl_buffer_region region = {offset, bytes};
  cl_int code = CL_SUCCESS;
  *part = (uintptr_t)gpu->CreateSubBuffer(Of(buffer), CL_MEM_READ_WRITE,
                                          CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  return Check(code, "take a part of a buffer");
}

/* The version that every driver supports, except for what only OpenCL C 3.0 has. No optimization
 * options: the source asks for fused multiply-adds where it wants them. */
static const char* OptionsFor(const char* source) {
  return strstr(source, "dot_4x8packed") != NULL || strstr(source, "sub_group_shuffle") != NULL
             ? "-cl-std=CL3.0"
             : "-cl-std=CL1.2";
}

static hone_network_status Load(HoneGpu* gpu, const hone_network* network,
                                const HonePlanKernel* kernel, HoneGpuModule** module) {
  const char* const source = network->plan.code + kernel->code.offset;
  const char* const name = hone_text(network, kernel->name);
  cl_int code = CL_SUCCESS;
  const cl_program program =
      gpu->CreateProgramWithSource(gpu->context, 1, (const char**)&source, NULL, &code);
  if (code != CL_SUCCESS) return Check(code, name);
  *module = (HoneGpuModule*)program;
  code = gpu->BuildProgram(program, 1, &gpu->device, OptionsFor(source), NULL, NULL);
  if (code == CL_SUCCESS) return HONE_NETWORK_OK;
  /* A buffer that is too small gets nothing. */
  size_t bytes = 0;
  gpu->GetProgramBuildInfo(program, gpu->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
  char* const log = calloc(bytes + 1, 1);
  if (log == NULL) return hone_fail_memory();
  gpu->GetProgramBuildInfo(program, gpu->device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
  for (char* c = log; *c != '\0'; ++c) {
    if ((*c < ' ' || *c > '~') && *c != '\n') *c = '?';
  }
  const hone_network_status status = hone_fail(
      HONE_NETWORK_DEVICE, "the driver refuses the kernel of %s (error %d of OpenCL):\n%.3500s",
      name, (int)code, log);
  free(log);
  return status;
}

static void Unload(HoneGpu* gpu, HoneGpuModule* module) {
  if (module != NULL) gpu->ReleaseProgram((cl_program)module);
}

static void FreeLaunch(HoneGpu* gpu, HoneGpuLaunch* launch) {
  if (launch == NULL) return;
  if (launch->kernel != NULL) gpu->ReleaseKernel(launch->kernel);
  free(launch);
}

static hone_network_status SetParameters(const HoneGpu* gpu, const HoneGpuLaunch* launch,
                                         const HoneGpuMemory* parameters, uint32_t count) {
  cl_uint expected = 0;
  gpu->GetKernelInfo(launch->kernel, CL_KERNEL_NUM_ARGS, sizeof expected, &expected, NULL);
  if (expected != count) {
    return hone_fail(HONE_NETWORK_DEVICE, "kernel '%s' has %u parameters instead of %u",
                     launch->name, (unsigned)expected, (unsigned)count);
  }
  size_t most = 0;
  const cl_int asked = gpu->GetKernelWorkGroupInfo(
      launch->kernel, gpu->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
  const size_t threads = launch->block[0] * launch->block[1] * launch->block[2];
  if (asked == CL_SUCCESS && threads > most) {
    return hone_fail(HONE_NETWORK_DEVICE,
                     "kernel '%s' has blocks of %zu threads, but the device has registers for "
                     "only %zu",
                     launch->name, threads, most);
  }
  for (uint32_t p = 0; p < count; ++p) {
    const cl_mem memory = Of(parameters[p]);
    const hone_network_status status =
        Check(gpu->SetKernelArg(launch->kernel, p, sizeof memory, memory == NULL ? NULL : &memory),
              launch->name);
    if (status != HONE_NETWORK_OK) return status;
  }
  return HONE_NETWORK_OK;
}

/* The source declares its shared memory. */
static hone_network_status NewLaunch(HoneGpu* gpu, HoneGpuModule* module,
                                     const hone_network* network, const HonePlanLaunch* launch,
                                     const HoneGpuMemory* parameters, uint32_t count,
                                     HoneGpuLaunch** made) {
  HoneGpuLaunch* const added = calloc(1, sizeof *added);
  if (added == NULL) return hone_fail_memory();
  added->name = hone_text(network, launch->name);
  for (int d = 0; d < 3; ++d) {
    added->block[d] = launch->block[d];
    added->items[d] = (size_t)launch->grid[d] * launch->block[d];
  }
  cl_int code = CL_SUCCESS;
  added->kernel = gpu->CreateKernel((cl_program)module, added->name, &code);
  hone_network_status status = Check(code, added->name);
  if (status == HONE_NETWORK_OK) status = SetParameters(gpu, added, parameters, count);
  if (status == HONE_NETWORK_OK) {
    *made = added;
  } else {
    FreeLaunch(gpu, added);
  }
  return status;
}

static void FreeEvent(const HoneGpu* gpu, cl_event* event) {
  if (*event != NULL) gpu->ReleaseEvent(*event);
  *event = NULL;
}

static void FreeEvents(HoneGpuQueue* queue) {
  for (uint32_t s = 0; s < queue->steps; ++s) {
    FreeEvent(queue->gpu, &queue->events[s].first);
    FreeEvent(queue->gpu, &queue->events[s].last);
  }
  FreeEvent(queue->gpu, &queue->last);
}

static void FreeQueue(HoneGpuQueue* queue) {
  if (queue == NULL) return;
  FreeEvents(queue);
  if (queue->queue != NULL) queue->gpu->ReleaseCommandQueue(queue->queue);
  free(queue);
}

static hone_network_status NewQueue(HoneGpu* gpu, uint32_t steps, HoneGpuQueue** queue) {
  HoneGpuQueue* const made = calloc(1, sizeof *made + steps * sizeof *made->events);
  if (made == NULL) return hone_fail_memory();
  made->gpu = gpu;
  made->steps = steps;
  *queue = made;
  cl_int code = CL_SUCCESS;
  made->queue =
      gpu->CreateCommandQueue(gpu->context, gpu->device, CL_QUEUE_PROFILING_ENABLE, &code);
  return Check(code, "make a queue");
}

static void Start(HoneGpuQueue* queue, int timed) {
  queue->timed = timed;
  clock_gettime(CLOCK_MONOTONIC, &queue->begin);
}

static hone_network_status BeginStep(HoneGpuQueue* queue, uint32_t step) {
  queue->step = step;
  return HONE_NETWORK_OK;
}

static hone_network_status Write(HoneGpuQueue* queue, HoneGpuMemory to, const void* from,
                                 uint64_t bytes) {
  return Check(
      queue->gpu->EnqueueWriteBuffer(queue->queue, Of(to), CL_FALSE, 0, bytes, from, 0, NULL, NULL),
      "write a buffer");
}

static hone_network_status Read(HoneGpuQueue* queue, HoneGpuMemory from, void* to, uint64_t bytes) {
  FreeEvent(queue->gpu, &queue->last);
  return Check(queue->gpu->EnqueueReadBuffer(queue->queue, Of(from), CL_FALSE, 0, bytes, to, 0,
                                             NULL, &queue->last),
               "read a buffer");
}

/* Keeps the event of a command of a step. */
static void Keep(HoneGpuQueue* queue, cl_event event) {
  if (event == NULL) return;
  Events* const events = &queue->events[queue->step];
  FreeEvent(queue->gpu, &events->last);
  *(events->first == NULL ? &events->first : &events->last) = event;
}

static hone_network_status Copy(HoneGpuQueue* queue, HoneGpuMemory from, HoneGpuMemory to,
                                uint64_t bytes) {
  cl_event event = NULL;
  const cl_int code = queue->gpu->EnqueueCopyBuffer(queue->queue, Of(from), Of(to), 0, 0, bytes, 0,
                                                    NULL, queue->timed ? &event : NULL);
  Keep(queue, event);
  return Check(code, "copy a buffer");
}

static hone_network_status Launch(HoneGpuQueue* queue, HoneGpuLaunch* launch) {
  cl_event event = NULL;
  const cl_int code =
      queue->gpu->EnqueueNDRangeKernel(queue->queue, launch->kernel, 3, NULL, launch->items,
                                       launch->block, 0, NULL, queue->timed ? &event : NULL);
  Keep(queue, event);
  return Check(code, launch->name);
}

/* The nanoseconds from the start of the first command to the end of the last one; 0: the driver
 * does not tell. */
static int64_t Between(const HoneGpu* gpu, const Events* events) {
  const cl_event last = events->last == NULL ? events->first : events->last;
  cl_ulong begin = 0, end = 0;
  if (last == NULL ||
      gpu->GetEventProfilingInfo(events->first, CL_PROFILING_COMMAND_START, sizeof begin, &begin,
                                 NULL) != CL_SUCCESS ||
      gpu->GetEventProfilingInfo(last, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) !=
          CL_SUCCESS) {
    return 0;
  }
  return end > begin ? (int64_t)(end - begin) : 0;
}

static hone_network_status Finish(HoneGpuQueue* queue, uint32_t steps, int64_t* step_ns) {
  const HoneGpu* const gpu = queue->gpu;
  hone_network_status status = Check(gpu->Finish(queue->queue), "wait for the kernels");
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  /* A kernel that fails ends the commands behind it, which some drivers report only here. */
  cl_int state = CL_COMPLETE;
  if (status == HONE_NETWORK_OK && queue->last != NULL) {
    gpu->GetEventInfo(queue->last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (state < 0) status = Check(state, "wait for the kernels");
  }
  int64_t sum = 0;
  for (uint32_t s = 0; step_ns != NULL && s < steps; ++s) {
    step_ns[s] = Between(gpu, &queue->events[s]);
    sum += step_ns[s];
  }
  const int64_t host_ns =
      (int64_t)(end.tv_sec - queue->begin.tv_sec) * 1000000000 + end.tv_nsec - queue->begin.tv_nsec;
  /* A driver whose times are longer than the run does not tell them. */
  if (sum > host_ns) memset(step_ns, 0, steps * sizeof *step_ns);
  FreeEvents(queue);
  return status;
}

const HoneGpuDriver hone_opencl_driver = {
    .open = Open,
    .close = Close,
    .enter = Enter,
    .leave = Enter,
    .allocate = Allocate,
    .free = Free,
    .part = Part,
    .free_part = Free,
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
};
