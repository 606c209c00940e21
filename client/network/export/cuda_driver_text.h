#ifndef HONE_CLIENT_NETWORK_EXPORT_CUDA_DRIVER_TEXT_H_
#define HONE_CLIENT_NETWORK_EXPORT_CUDA_DRIVER_TEXT_H_

namespace hone::client {

// The part of a host program that calls the CUDA driver: the types
// Memory, Module and Kernel; open_device, make_buffer, write_buffer, read_buffer, load_module,
// make_kernel, launch and finish. @NAME@ is the name of the export.
inline constexpr char kCudaDriverText[] =
    R"c(/* What is used of the driver API. */
typedef int Result;
typedef uint64_t Memory;
typedef struct Context* Context;
typedef struct Module* Module;
typedef struct Function* Function;
enum { kSharedBytes = 1, kMaxDynamicSharedBytes = 8, kCommonSharedBytes = 48 << 10 };

static void* library;

static void fail(const char* what, Result code) {
  const char* name = NULL;
  Result (*error_name)(Result, const char**) = NULL;
  if (library != NULL) *(void**)&error_name = dlsym(library, "cuGetErrorName");
  if (error_name != NULL) error_name(code, &name);
  fprintf(stderr, "@NAME@_host: %s (%s, CUDA error %d)\n", what, name == NULL ? "unknown" : name, code);
  exit(1);
}
static void check(Result code, const char* what) {
  if (code != 0) fail(what, code);
}
/* Declares a function of the driver, and finds it. */
#define USE(name, symbol, ...)                                \
  typedef Result (*name##Function)(__VA_ARGS__);              \
  static name##Function name(void) {                          \
    void* found = dlsym(library, symbol);                     \
    if (found == NULL) fail("libcuda has no " symbol, 0);     \
    return (name##Function)found;                             \
  }
USE(cuInit, "cuInit", unsigned)
USE(cuDeviceGet, "cuDeviceGet", int*, int)
USE(cuDeviceGetName, "cuDeviceGetName", char*, int, int)
USE(cuCtxCreate, "cuCtxCreate_v2", Context*, unsigned, int)
USE(cuModuleLoadData, "cuModuleLoadData", Module*, const void*)
USE(cuModuleGetFunction, "cuModuleGetFunction", Function*, Module, const char*)
USE(cuFuncGetAttribute, "cuFuncGetAttribute", int*, int, Function)
USE(cuFuncSetAttribute, "cuFuncSetAttribute", Function, int, int)
USE(cuMemAlloc, "cuMemAlloc_v2", Memory*, size_t)
USE(cuMemcpyHtoD, "cuMemcpyHtoD_v2", Memory, const void*, size_t)
USE(cuMemcpyDtoH, "cuMemcpyDtoH_v2", void*, Memory, size_t)
USE(cuLaunchKernel, "cuLaunchKernel", Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    void*, void**, void**)
USE(cuStreamSynchronize, "cuStreamSynchronize", void*)

/* Opens the first GPU. Returns its name. */
static const char* open_device(void) {
  static char name[256];
  int device = 0;
  Context context = NULL;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) fail("libcuda.so.1, which NVIDIA's driver installs, is missing", 0);
  check(cuInit()(0), "cuInit");
  check(cuDeviceGet()(&device, 0), "there is no GPU");
  cuDeviceGetName()(name, sizeof name - 1, device);
  check(cuCtxCreate()(&context, 0, device), "cuCtxCreate");
  return name;
}

/* 0 if the size is 0; nothing is then written or read. */
static Memory make_buffer(int64_t bytes) {
  Memory pointer = 0;
  if (bytes > 0) check(cuMemAlloc()(&pointer, (size_t)bytes), "cuMemAlloc");
  return pointer;
}
static void write_buffer(Memory memory, int64_t bytes, const void* from) {
  if (bytes > 0) check(cuMemcpyHtoD()(memory, from, (size_t)bytes), "write a buffer");
}
static void read_buffer(Memory memory, int64_t bytes, void* to) {
  if (bytes > 0) check(cuMemcpyDtoH()(to, memory, (size_t)bytes), "read a buffer");
}

static Module load_module(const char* code) {
  Module module = NULL;
  check(cuModuleLoadData()(&module, code), "load the kernels");
  return module;
}

/* A kernel with its parameters, and the shared memory that its launches must ask for. */
typedef struct {
  Function function;
  unsigned dynamic_bytes;
  Memory* values;
  void** parameters;
} Kernel;

static Kernel make_kernel(Module module, const char* name, size_t shared_bytes, unsigned count, const Memory* parameters) {
  Kernel kernel = {NULL, 0, NULL, NULL};
  int declared = 0;
  check(cuModuleGetFunction()(&kernel.function, module, name), name);
  check(cuFuncGetAttribute()(&declared, kSharedBytes, kernel.function), "cuFuncGetAttribute");
  if (shared_bytes > (size_t)declared) kernel.dynamic_bytes = (unsigned)shared_bytes - (unsigned)declared;
  if (shared_bytes > kCommonSharedBytes) {
    check(cuFuncSetAttribute()(kernel.function, kMaxDynamicSharedBytes, (int)kernel.dynamic_bytes), "cuFuncSetAttribute");
  }
  kernel.values = malloc(count * sizeof *kernel.values);
  kernel.parameters = malloc(count * sizeof *kernel.parameters);
  if (kernel.values == NULL || kernel.parameters == NULL) fail("out of memory", 0);
  for (unsigned p = 0; p < count; ++p) {
    kernel.values[p] = parameters[p];
    kernel.parameters[p] = &kernel.values[p];
  }
  return kernel;
}

static void launch(const Kernel* kernel, const size_t* grid, const size_t* block, const char* name) {
  check(cuLaunchKernel()(kernel->function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2], (unsigned)block[0],
                         (unsigned)block[1], (unsigned)block[2], kernel->dynamic_bytes, NULL, kernel->parameters, NULL),
        name);
}
static void finish(void) { check(cuStreamSynchronize()(NULL), "run the kernels"); }
)c";

}  // namespace hone::client

#endif  // HONE_CLIENT_NETWORK_EXPORT_CUDA_DRIVER_TEXT_H_
