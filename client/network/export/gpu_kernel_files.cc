#include "client/network/export/gpu_kernel_files.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/network/export/c_text.h"
#include "client/network/export/cuda_driver_text.h"
#include "client/network/export/opencl_driver_text.h"

namespace hone::client {
namespace {

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
