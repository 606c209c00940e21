#ifndef HONE_CLIENT_LIB_CUDA_HOST_TEXT_H_
#define HONE_CLIENT_LIB_CUDA_HOST_TEXT_H_

namespace hone::client {

// The host program of a kernel for NVIDIA's GPUs. The placeholders are as in kOpenClHostText.
inline constexpr char kCudaHostText[] =
    R"c(/* Runs the kernels of @NAME@.cubin on the first GPU. It needs no CUDA toolkit:
 *
 *   cc @NAME@_host.c -o @NAME@_host -ldl
 *   ./@NAME@_host @NAME@.cubin @FILES@
 *
 * The files of the inputs hold their elements without a header, row-major; those of the outputs
 * are written in the same way. Without them, the inputs are zeros, and only the time is printed.
 * The cubin is for the GPUs of one architecture; @NAME@.ptx, which drivers compile for newer ones,
 * can be given in its place.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "@NAME@.h"

/* What is used of the driver API. */
typedef int Result;
typedef uint64_t Pointer;
typedef struct Context* Context;
typedef struct Module* Module;
typedef struct Function* Function;
typedef struct Event* Event;
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
USE(cuMemAlloc, "cuMemAlloc_v2", Pointer*, size_t)
USE(cuMemcpyHtoD, "cuMemcpyHtoD_v2", Pointer, const void*, size_t)
USE(cuMemcpyDtoH, "cuMemcpyDtoH_v2", void*, Pointer, size_t)
USE(cuLaunchKernel, "cuLaunchKernel", Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    void*, void**, void**)
USE(cuStreamSynchronize, "cuStreamSynchronize", void*)
USE(cuEventCreate, "cuEventCreate", Event*, unsigned)
USE(cuEventRecord, "cuEventRecord", Event, void*)
USE(cuEventElapsedTime, "cuEventElapsedTime", float*, Event, Event)

static Pointer make_buffer(int64_t bytes) {
  Pointer pointer = 0;
  if (bytes > 0) check(cuMemAlloc()(&pointer, (size_t)bytes), "cuMemAlloc");
  return pointer;
}

@READ_FILE@/* A kernel with the shared memory that its launches must ask for. */
typedef struct {
  Function function;
  unsigned dynamic_bytes;
} Kernel;

static Kernel find_kernel(Module module, const HoneGpuLaunch* launch) {
  Kernel kernel = {NULL, 0};
  int declared = 0;
  check(cuModuleGetFunction()(&kernel.function, module, launch->kernel), launch->kernel);
  check(cuFuncGetAttribute()(&declared, kSharedBytes, kernel.function), "cuFuncGetAttribute");
  if (launch->shared_bytes > (size_t)declared) kernel.dynamic_bytes = (unsigned)launch->shared_bytes - (unsigned)declared;
  if (launch->shared_bytes > kCommonSharedBytes) {
    check(cuFuncSetAttribute()(kernel.function, kMaxDynamicSharedBytes, (int)kernel.dynamic_bytes), "cuFuncSetAttribute");
  }
  return kernel;
}

static void run(const Kernel* kernels, void** parameters, int prepack) {
  for (int i = 0; i < @PREFIX@_LAUNCHES; ++i) {
    const HoneGpuLaunch* launch = &@NAME@_launches[i];
    if (launch->prepack != prepack) continue;
    check(cuLaunchKernel()(kernels[i].function, (unsigned)launch->grid[0], (unsigned)launch->grid[1],
                           (unsigned)launch->grid[2], (unsigned)launch->block[0], (unsigned)launch->block[1],
                           (unsigned)launch->block[2], kernels[i].dynamic_bytes, NULL, parameters, NULL),
          launch->kernel);
  }
}

int main(int argc, char** argv) {
  const int64_t sizes[@PREFIX@_BUFFERS] = {@SIZES@};
  const int inputs = @INPUTS@, files = argc > 2 ? argc - 2 : 0;
  if (files != 0 && files != @PREFIX@_BUFFERS) {
    fprintf(stderr, "usage: %s @NAME@.cubin [@FILES@]\n", argv[0]);
    return 2;
  }
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) fail("libcuda.so.1, which NVIDIA's driver installs, is missing", 0);
  int device = 0;
  char name[256] = "";
  Context context = NULL;
  check(cuInit()(0), "cuInit");
  check(cuDeviceGet()(&device, 0), "there is no GPU");
  cuDeviceGetName()(name, sizeof name - 1, device);
  check(cuCtxCreate()(&context, 0, device), "cuCtxCreate");

  Module module = NULL;
  check(cuModuleLoadData()(&module, read_file(argc > 1 ? argv[1] : "@NAME@.cubin", -1)), "load the kernels");
  Kernel kernels[@PREFIX@_LAUNCHES];
  for (int i = 0; i < @PREFIX@_LAUNCHES; ++i) kernels[i] = find_kernel(module, &@NAME@_launches[i]);

  /* The buffers, the packed constants and the workspace: the parameters of every kernel. */
  Pointer memory[@PREFIX@_BUFFERS + 2];
  void* parameters[@PREFIX@_BUFFERS + 2];
  for (int b = 0; b < @PREFIX@_BUFFERS; ++b) {
    memory[b] = make_buffer(sizes[b]);
    if (b >= inputs) continue;
    char* content = files > 0 ? read_file(argv[2 + b], sizes[b]) : calloc((size_t)sizes[b], 1);
    check(cuMemcpyHtoD()(memory[b], content, (size_t)sizes[b]), "write a buffer");
    free(content);
  }
  memory[@PREFIX@_BUFFERS] = make_buffer(@PREFIX@_PACKED_BYTES);
  memory[@PREFIX@_BUFFERS + 1] = make_buffer(@PREFIX@_WORKSPACE_BYTES);
  for (int p = 0; p < @PREFIX@_BUFFERS + 2; ++p) parameters[p] = &memory[p];

  run(kernels, parameters, 1);
  run(kernels, parameters, 0); /* also warms up */
  Event begin = NULL, end = NULL;
  check(cuEventCreate()(&begin, 0), "cuEventCreate");
  check(cuEventCreate()(&end, 0), "cuEventCreate");
  check(cuEventRecord()(begin, NULL), "cuEventRecord");
  for (int i = 0; i < 10; ++i) run(kernels, parameters, 0);
  check(cuEventRecord()(end, NULL), "cuEventRecord");
  check(cuStreamSynchronize()(NULL), "run the kernels");
  float milliseconds = 0;
  check(cuEventElapsedTime()(&milliseconds, begin, end), "cuEventElapsedTime");
  printf("%s: %.1f us for each call\n", name, 1e3 * milliseconds / 10);

  for (int b = inputs; files > 0 && b < @PREFIX@_BUFFERS; ++b) {
    char* content = malloc((size_t)sizes[b]);
    if (content == NULL) fail("out of memory", 0);
    check(cuMemcpyDtoH()(content, memory[b], (size_t)sizes[b]), "read a buffer");
    FILE* file = fopen(argv[2 + b], "wb");
    if (file == NULL || fwrite(content, 1, (size_t)sizes[b], file) != (size_t)sizes[b] || fclose(file) != 0) {
      perror(argv[2 + b]);
      return 1;
    }
    free(content);
  }
  return 0;
}
)c";

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_CUDA_HOST_TEXT_H_
