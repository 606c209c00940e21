#ifndef HONE_CLIENT_LIB_OPENCL_HOST_TEXT_H_
#define HONE_CLIENT_LIB_OPENCL_HOST_TEXT_H_

namespace hone::client {

// The host program of a kernel for OpenCL devices. @NAME@ is the name of the files, @PREFIX@ that
// of the macros, @FILES@ an example of its arguments, @SIZES@ the bytes of all buffers, @INPUTS@
// the number of inputs, and @READ_FILE@ the function of this name.
inline constexpr char kOpenClHostText[] =
    R"c(/* Runs the kernels of @NAME@.cl on the first OpenCL device. It needs no OpenCL headers:
 *
 *   cc @NAME@_host.c -o @NAME@_host -ldl
 *   ./@NAME@_host @NAME@.cl @FILES@
 *
 * The files of the inputs hold their elements without a header, row-major; those of the outputs
 * are written in the same way. Without them, the inputs are zeros, and only the time is printed.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "@NAME@.h"

/* What is used of OpenCL 1.2. */
typedef struct Platform* Platform;
typedef struct DeviceId* Device;
typedef struct Context* Context;
typedef struct Queue* Queue;
typedef struct Program* Program;
typedef struct Kernel* Kernel;
typedef struct Memory* Memory;
enum { kGpu = 1 << 2, kReadWrite = 1, kDeviceName = 0x102b, kBuildLog = 0x1183, kDeviceNotFound = -1 };

static void* library;

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
USE(Program, clCreateProgramWithSource, Context, unsigned, const char**, const size_t*, int*)
USE(int, clBuildProgram, Program, unsigned, const Device*, const char*, void*, void*)
USE(int, clGetProgramBuildInfo, Program, Device, unsigned, size_t, void*, size_t*)
USE(Kernel, clCreateKernel, Program, const char*, int*)
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
      Device device;
      if (clGetDeviceIDs()(platforms[p], types[t], 1, &device, NULL) == 0) return device;
    }
  }
  fail("there is no OpenCL device", kDeviceNotFound);
  return NULL;
}

static Memory make_buffer(Context context, int64_t bytes) {
  if (bytes == 0) return NULL;
  int code = 0;
  Memory memory = clCreateBuffer()(context, kReadWrite, (size_t)bytes, NULL, &code);
  check(code, "clCreateBuffer");
  return memory;
}

@READ_FILE@static void run(Queue queue, Kernel* kernels, int prepack) {
  for (int i = 0; i < @PREFIX@_LAUNCHES; ++i) {
    const HoneGpuLaunch* launch = &@NAME@_launches[i];
    if (launch->prepack != prepack) continue;
    size_t items[3];
    for (int d = 0; d < 3; ++d) items[d] = launch->grid[d] * launch->block[d];
    check(clEnqueueNDRangeKernel()(queue, kernels[i], 3, NULL, items, launch->block, 0, NULL, NULL), launch->kernel);
  }
  check(clFinish()(queue), "clFinish");
}

int main(int argc, char** argv) {
  const int64_t sizes[@PREFIX@_BUFFERS] = {@SIZES@};
  const int inputs = @INPUTS@, files = argc > 2 ? argc - 2 : 0;
  if (files != 0 && files != @PREFIX@_BUFFERS) {
    fprintf(stderr, "usage: %s @NAME@.cl [@FILES@]\n", argv[0]);
    return 2;
  }
  library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (library == NULL) fail("libOpenCL.so.1 is missing", 0);
  Device device = first_device();
  char name[256] = "";
  clGetDeviceInfo()(device, kDeviceName, sizeof name - 1, name, NULL);
  int code = 0;
  Context context = clCreateContext()(NULL, 1, &device, NULL, NULL, &code);
  check(code, "clCreateContext");
  Queue queue = clCreateCommandQueue()(context, device, 0, &code);
  check(code, "clCreateCommandQueue");

  const char* source = read_file(argc > 1 ? argv[1] : "@NAME@.cl", -1);
  Program program = clCreateProgramWithSource()(context, 1, &source, NULL, &code);
  check(code, "clCreateProgramWithSource");
  code = clBuildProgram()(program, 1, &device, "-cl-std=CL1.2", NULL, NULL);
  if (code != 0) {
    static char log[1 << 16];
    clGetProgramBuildInfo()(program, device, kBuildLog, sizeof log - 1, log, NULL);
    fprintf(stderr, "%s\n", log);
    fail("clBuildProgram", code);
  }

  /* The buffers, the packed constants and the workspace: the parameters of every kernel. */
  Memory memory[@PREFIX@_BUFFERS + 2];
  for (int b = 0; b < @PREFIX@_BUFFERS; ++b) {
    memory[b] = make_buffer(context, sizes[b]);
    if (b >= inputs) continue;
    char* content = files > 0 ? read_file(argv[2 + b], sizes[b]) : calloc((size_t)sizes[b], 1);
    check(clEnqueueWriteBuffer()(queue, memory[b], 1, 0, (size_t)sizes[b], content, 0, NULL, NULL), "write a buffer");
    free(content);
  }
  memory[@PREFIX@_BUFFERS] = make_buffer(context, @PREFIX@_PACKED_BYTES);
  memory[@PREFIX@_BUFFERS + 1] = make_buffer(context, @PREFIX@_WORKSPACE_BYTES);
  Kernel kernels[@PREFIX@_LAUNCHES];
  for (int i = 0; i < @PREFIX@_LAUNCHES; ++i) {
    kernels[i] = clCreateKernel()(program, @NAME@_launches[i].kernel, &code);
    check(code, @NAME@_launches[i].kernel);
    for (unsigned p = 0; p < @PREFIX@_BUFFERS + 2; ++p) {
      check(clSetKernelArg()(kernels[i], p, sizeof(Memory), &memory[p]), "clSetKernelArg");
    }
  }

  run(queue, kernels, 1);
  run(queue, kernels, 0); /* also warms up */
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < 10; ++i) run(queue, kernels, 0);
  clock_gettime(CLOCK_MONOTONIC, &end);
  const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  printf("%s: %.1f us for each call\n", name, 1e6 * seconds / 10);

  for (int b = inputs; files > 0 && b < @PREFIX@_BUFFERS; ++b) {
    char* content = malloc((size_t)sizes[b]);
    if (content == NULL) fail("out of memory", 0);
    check(clEnqueueReadBuffer()(queue, memory[b], 1, 0, (size_t)sizes[b], content, 0, NULL, NULL), "read a buffer");
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

#endif  // HONE_CLIENT_LIB_OPENCL_HOST_TEXT_H_
