#ifndef HONE_CLIENT_NETWORK_EXPORT_OPENCL_DRIVER_TEXT_H_
#define HONE_CLIENT_NETWORK_EXPORT_OPENCL_DRIVER_TEXT_H_

namespace hone::client {

// The part of a host program that calls OpenCL: the types
// Memory, Module and Kernel; open_device, make_buffer, write_buffer, read_buffer, load_module,
// make_kernel, launch and finish. @NAME@ is the name of the export.
inline constexpr char kOpenClDriverText[] =
    R"c(/* What is used of OpenCL 1.2. */
typedef struct Platform* Platform;
typedef struct DeviceId* Device;
typedef struct Context* Context;
typedef struct Queue* Queue;
typedef struct Program* Module;
typedef struct Kernel* Kernel;
typedef struct Memory* Memory;
enum { kGpu = 1 << 2, kReadWrite = 1, kDeviceName = 0x102b, kBuildLog = 0x1183, kDeviceNotFound = -1 };

static void* library;
static Device device;
static Context context;
static Queue queue;

static void fail(const char* what, int code) {
  fprintf(stderr, "@NAME@_host: %s (OpenCL error %d)\n", what, code);
  exit(1);
}
static void check(int code, const char* what) {
  if (code != 0) fail(what, code);
}
/* Declares a function of OpenCL, and finds it. */
#define USE(type, name, ...)                                  \
  typedef type (*name##Function)(__VA_ARGS__);                \
  static name##Function name(void) {                          \
    void* symbol = dlsym(library, #name);                     \
    if (symbol == NULL) fail("libOpenCL has no " #name, 0);   \
    return (name##Function)symbol;                            \
  }
USE(int, clGetPlatformIDs, unsigned, Platform*, unsigned*)
USE(int, clGetDeviceIDs, Platform, uint64_t, unsigned, Device*, unsigned*)
USE(int, clGetDeviceInfo, Device, unsigned, size_t, void*, size_t*)
USE(Context, clCreateContext, const intptr_t*, unsigned, const Device*, void*, void*, int*)
USE(Queue, clCreateCommandQueue, Context, Device, uint64_t, int*)
USE(Module, clCreateProgramWithSource, Context, unsigned, const char**, const size_t*, int*)
USE(int, clBuildProgram, Module, unsigned, const Device*, const char*, void*, void*)
USE(int, clGetProgramBuildInfo, Module, Device, unsigned, size_t, void*, size_t*)
USE(Kernel, clCreateKernel, Module, const char*, int*)
USE(int, clSetKernelArg, Kernel, unsigned, size_t, const void*)
USE(Memory, clCreateBuffer, Context, uint64_t, size_t, void*, int*)
USE(int, clEnqueueWriteBuffer, Queue, Memory, unsigned, size_t, size_t, const void*, unsigned, const void*, void*)
USE(int, clEnqueueReadBuffer, Queue, Memory, unsigned, size_t, size_t, void*, unsigned, const void*, void*)
USE(int, clEnqueueNDRangeKernel, Queue, Kernel, unsigned, const size_t*, const size_t*, const size_t*, unsigned,
    const void*, void*)
USE(int, clFinish, Queue)

/* The first GPU, or else the first device. */
static Device first_device(void) {
  Platform platforms[16];
  unsigned count = 0;
  if (clGetPlatformIDs()(16, platforms, &count) != 0 || count == 0) fail("no OpenCL driver is installed", 0);
  if (count > 16) count = 16;
  const uint64_t types[] = {kGpu, ~(uint64_t)0 >> 32};
  for (int t = 0; t < 2; ++t) {
    for (unsigned p = 0; p < count; ++p) {
      Device found;
      if (clGetDeviceIDs()(platforms[p], types[t], 1, &found, NULL) == 0) return found;
    }
  }
  fail("there is no OpenCL device", kDeviceNotFound);
  return NULL;
}

/* Returns its name. */
static const char* open_device(void) {
  static char name[256];
  int code = 0;
  library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (library == NULL) fail("libOpenCL.so.1 is missing", 0);
  device = first_device();
  clGetDeviceInfo()(device, kDeviceName, sizeof name - 1, name, NULL);
  context = clCreateContext()(NULL, 1, &device, NULL, NULL, &code);
  check(code, "clCreateContext");
  queue = clCreateCommandQueue()(context, device, 0, &code);
  check(code, "clCreateCommandQueue");
  return name;
}

/* NULL if the size is 0; nothing is then written or read. */
static Memory make_buffer(int64_t bytes) {
  if (bytes == 0) return NULL;
  int code = 0;
  Memory memory = clCreateBuffer()(context, kReadWrite, (size_t)bytes, NULL, &code);
  check(code, "clCreateBuffer");
  return memory;
}
static void write_buffer(Memory memory, int64_t bytes, const void* from) {
  if (bytes == 0) return;
  check(clEnqueueWriteBuffer()(queue, memory, 1, 0, (size_t)bytes, from, 0, NULL, NULL), "write a buffer");
}
static void read_buffer(Memory memory, int64_t bytes, void* to) {
  if (bytes == 0) return;
  check(clEnqueueReadBuffer()(queue, memory, 1, 0, (size_t)bytes, to, 0, NULL, NULL), "read a buffer");
}

static Module load_module(const char* source) {
  int code = 0;
  Module module = clCreateProgramWithSource()(context, 1, &source, NULL, &code);
  check(code, "clCreateProgramWithSource");
  /* Only OpenCL C 3.0 has these functions. */
  const int is_new = strstr(source, "dot_4x8packed") != NULL || strstr(source, "sub_group_shuffle") != NULL;
  const char* options = is_new ? "-cl-std=CL3.0" : "-cl-std=CL1.2";
  code = clBuildProgram()(module, 1, &device, options, NULL, NULL);
  if (code != 0) {
    static char log[1 << 16];
    clGetProgramBuildInfo()(module, device, kBuildLog, sizeof log - 1, log, NULL);
    fprintf(stderr, "%s\n", log);
    fail("clBuildProgram", code);
  }
  return module;
}

/* A kernel with its parameters. The source declares its shared memory. */
static Kernel make_kernel(Module module, const char* name, size_t shared_bytes, unsigned count, const Memory* parameters) {
  (void)shared_bytes;
  int code = 0;
  Kernel kernel = clCreateKernel()(module, name, &code);
  check(code, name);
  for (unsigned p = 0; p < count; ++p) {
    check(clSetKernelArg()(kernel, p, sizeof(Memory), &parameters[p]), "clSetKernelArg");
  }
  return kernel;
}

static void launch(const Kernel* kernel, const size_t* grid, const size_t* block, const char* name) {
  size_t items[3];
  for (int d = 0; d < 3; ++d) items[d] = grid[d] * block[d];
  check(clEnqueueNDRangeKernel()(queue, *kernel, 3, NULL, items, block, 0, NULL, NULL), name);
}
static void finish(void) { check(clFinish()(queue), "clFinish"); }
)c";

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_OPENCL_DRIVER_TEXT_H_
