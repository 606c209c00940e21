#include "client/network/export/gpu_kernel_files.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/network/export/c_text.h"

namespace hone::client {
namespace {

// The part of a host program that calls the CUDA driver: the types
// Memory, Module and Kernel; open_device, make_buffer, write_buffer, read_buffer, load_module,
// make_kernel, launch and finish. @NAME@ is the name of the export.
constexpr char kCudaDriverText[] =
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
  int declared = 0, reserved = 0;
  check(cuModuleGetFunction()(&kernel.function, module, name), name);
  check(cuFuncGetAttribute()(&declared, kSharedBytes, kernel.function), "cuFuncGetAttribute");
  if (shared_bytes > (size_t)declared) kernel.dynamic_bytes = (unsigned)shared_bytes - (unsigned)declared;
  check(cuFuncGetAttribute()(&reserved, kMaxDynamicSharedBytes, kernel.function), "cuFuncGetAttribute");
  if (shared_bytes > kCommonSharedBytes && kernel.dynamic_bytes > (unsigned)reserved) {
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

// The part of a host program that calls OpenCL: the types
// Memory, Module and Kernel; open_device, make_buffer, write_buffer, read_buffer, load_module,
// make_kernel, launch and finish. @NAME@ is the name of the export.
constexpr char kOpenClDriverText[] =
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

constexpr char kUsageText[] = R"c( *
 *   cc @NAME@_host.c -o @NAME@_host -ldl
 *   ./@NAME@_host @NAME@@BINARY@ @FILES@
 *
 * The files of the inputs hold their elements without a header, row-major; those of the outputs
 * are written in the same way. Without them, the inputs are zeros, and only the time is printed.
)c";

// The beginning of a host program.
constexpr char kHeaders[] = R"c(#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "@NAME@.h"

)c";

// What it does with files, after the functions of a driver.
constexpr char kFiles[] =
    R"c(
/* The bytes of a file, which has `bytes` of them; any number if that is -1. A 0 follows. */
static char* read_file(const char* path, int64_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  const int64_t size = ftell(file);
  rewind(file);
  if (bytes >= 0 && size != bytes) {
    fprintf(stderr, "%s has %lld bytes, not %lld\n", path, (long long)size, (long long)bytes);
    exit(1);
  }
  char* content = calloc((size_t)size + 1, 1);
  if (content == NULL || fread(content, 1, (size_t)size, file) != (size_t)size) fail(path, 0);
  fclose(file);
  return content;
}

/* Writes the content of a buffer. */
static void write_file(const char* path, Memory memory, int64_t bytes) {
  char* content = malloc((size_t)bytes);
  if (content == NULL) fail("out of memory", 0);
  read_buffer(memory, bytes, content);
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(content, 1, (size_t)bytes, file) != (size_t)bytes || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
  free(content);
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
)c";

// The rest of it.
constexpr char kHostText[] = R"c(
static void run(const Kernel* kernels, int prepack) {
  for (int i = 0; i < @PREFIX@_LAUNCHES; ++i) {
    const HoneGpuLaunch* one = &@NAME@_launches[i];
    if (one->prepack == prepack) launch(&kernels[i], one->grid, one->block, one->kernel);
  }
  finish();
}

int main(int argc, char** argv) {
  const int64_t sizes[@PREFIX@_BUFFERS] = {@SIZES@};
  const int inputs = @INPUTS@, files = argc > 2 ? argc - 2 : 0;
  if (files != 0 && files != @PREFIX@_BUFFERS) {
    fprintf(stderr, "usage: %s @NAME@@BINARY@ [@FILES@]\n", argv[0]);
    return 2;
  }
  const char* name = open_device();
  Module module = load_module(read_file(argc > 1 ? argv[1] : "@NAME@@BINARY@", -1));

  /* The buffers, the packed constants and the workspace: the parameters of every kernel. */
  Memory memory[@PREFIX@_BUFFERS + 2];
  for (int b = 0; b < @PREFIX@_BUFFERS; ++b) {
    memory[b] = make_buffer(sizes[b]);
    if (b >= inputs) continue;
    char* content = files > 0 ? read_file(argv[2 + b], sizes[b]) : calloc((size_t)sizes[b], 1);
    write_buffer(memory[b], sizes[b], content);
    free(content);
  }
  memory[@PREFIX@_BUFFERS] = make_buffer(@PREFIX@_PACKED_BYTES);
  memory[@PREFIX@_BUFFERS + 1] = make_buffer(@PREFIX@_WORKSPACE_BYTES);
  Kernel kernels[@PREFIX@_LAUNCHES];
  for (int i = 0; i < @PREFIX@_LAUNCHES; ++i) {
    const HoneGpuLaunch* one = &@NAME@_launches[i];
    kernels[i] = make_kernel(module, one->kernel, one->shared_bytes, @PREFIX@_BUFFERS + 2, memory);
  }

  run(kernels, 1);
  run(kernels, 0); /* also warms up */
  const double begin = seconds();
  for (int i = 0; i < 10; ++i) run(kernels, 0);
  printf("%s: %.1f us for each call\n", name, 1e6 * (seconds() - begin) / 10);
  for (int b = inputs; files > 0 && b < @PREFIX@_BUFFERS; ++b) write_file(argv[2 + b], memory[b], sizes[b]);
  return 0;
}
)c";

// The words for a kind of device and its files, in the texts.
struct Kind {
  const char* title;   // the kind of the kernels
  const char* binary;  // the suffix of the file that a program loads
  const char* about;   // a description of the files, after their name
  const char* host;    // what the host program does
  const char* note;    // more about its files
  const char* driver;  // the functions that hide it
};
Kind KindOf(const target::GpuModule& module) {
  if (module.kind == target::Kind::kCuda) {
    return {
        "CUDA",
        ".cubin",
        " is their code for exactly this architecture, the files .ptx and .cu have it\n * as "
        "PTX for newer ones and as CUDA C++, ",
        "/* Runs the kernels of @NAME@.cubin on the first GPU. It needs no CUDA toolkit:\n",
        " * The cubin is for the GPUs of one architecture; @NAME@.ptx, which drivers compile for "
        "newer\n * ones, can be given in its place.\n",
        kCudaDriverText};
  }
  return {
      "OpenCL",
      ".cl",
      " is their source in OpenCL C, ",
      "/* Runs the kernels of @NAME@.cl on the first OpenCL device. It needs no OpenCL headers:\n",
      "",
      kOpenClDriverText};
}

std::string LaunchText(const target::GpuLaunch& launch) {
  return absl::StrFormat("    {\"%s\", %d, {%s}, {%s}, %d},\n", launch.kernel,
                         launch.prepack ? 1 : 0, absl::StrJoin(launch.grid, ", "),
                         absl::StrJoin(launch.block, ", "), launch.shared_bytes);
}

// "A.bin B.bin C.bin": an example of the host program's arguments.
std::string FileNames(const ir::Workload& workload) {
  return absl::StrJoin(BuffersOf(workload), " ", [&](std::string* out, ir::BufferId id) {
    absl::StrAppend(out, CIdentifier(workload.tensors[id].name), ".bin");
  });
}

}  // namespace

std::string GpuKernelHeader(const ir::Workload& workload, const target::GpuModule& module,
                            const GpuKernelFacts& facts) {
  const std::string prefix = MacroPrefix(facts.name);
  const Kind kind = KindOf(module);
  std::string text = absl::StrCat("/* ", kind.title, " kernels made by Hone ", HONE_VERSION,
                                  " for ", facts.target_key, ". They compute\n *\n",
                                  CommentLines(workload.ToText()), " *\n");
  if (const std::string line = MeasuredLine(facts.latency_ns, facts.gflops); !line.empty()) {
    absl::StrAppend(&text, line, " *\n");
  }
  absl::StrAppend(
      &text, " * ", facts.name, kind.binary, kind.about, facts.name,
      ".json has the launches for other\n * languages, and ", facts.name,
      "_host.c is a program that runs them.\n"
      " *\n"
      " * Every kernel has the same parameters: the buffers in order, the packed constants, and\n"
      " * the workspace (a null pointer if the size is 0). Launches with prepack = 1 run once, "
      "when\n"
      " * the constant inputs are there; the others run in order, in one queue, for each call.\n"
      " */\n#ifndef HONE_GPU_KERNEL_",
      prefix, "_H\n#define HONE_GPU_KERNEL_", prefix,
      "_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n");
  absl::StrAppend(&text, "/* Dense, row-major, inputs first. */\n#define ", prefix, "_BUFFERS ",
                  module.arguments, "\n#define ", prefix, "_PACKED_BYTES INT64_C(",
                  module.packed_bytes, ")\n#define ", prefix, "_WORKSPACE_BYTES INT64_C(",
                  module.workspace_bytes, ")\n\n");
  absl::StrAppend(&text, BufferMacros(prefix, workload, [&](size_t input) -> std::string {
    return facts.reads.empty() || facts.reads[input]
               ? "constant: read by launches with prepack = 0, too"
               : "constant: read by launches with prepack = 1 only; for the others it may be null";
  }));
  absl::StrAppend(&text, R"(#ifndef HONE_GPU_LAUNCH
#define HONE_GPU_LAUNCH
/* One launch: in each dimension, grid[d] blocks (work groups) of block[d] threads (work items). */
typedef struct {
  const char* kernel;
  int prepack;
  size_t grid[3], block[3];
  size_t shared_bytes; /* shared (local) memory of a block, in all */
} HoneGpuLaunch;
#endif

)",
                  "#define ", prefix, "_LAUNCHES ", module.launches.size(),
                  "\nstatic const HoneGpuLaunch ", facts.name, "_launches[", prefix,
                  "_LAUNCHES] = {\n",
                  absl::StrJoin(module.launches, "",
                                [](std::string* out, const target::GpuLaunch& launch) {
                                  absl::StrAppend(out, LaunchText(launch));
                                }),
                  "};\n\n#endif\n");
  return text;
}

std::string GpuHostProgram(const ir::Workload& workload, const target::GpuModule& module,
                           const GpuKernelFacts& facts) {
  const std::string prefix = MacroPrefix(facts.name);
  const std::string sizes = absl::StrJoin(
      BufferPrefixes(prefix, workload), ", ",
      [](std::string* out, const std::string& buffer) { absl::StrAppend(out, buffer, "_BYTES"); });
  const Kind kind = KindOf(module);
  const std::string text = absl::StrCat(kind.host, kUsageText, kind.note, " */\n", kHeaders,
                                        kind.driver, kFiles, kHostText);
  return absl::StrReplaceAll(text, {{"@NAME@", facts.name},
                                    {"@BINARY@", kind.binary},
                                    {"@PREFIX@", prefix},
                                    {"@FILES@", FileNames(workload)},
                                    {"@SIZES@", sizes},
                                    {"@INPUTS@", absl::StrCat(workload.Inputs().size())}});
}

}  // namespace hone::client
