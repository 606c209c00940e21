#include "client/lib/gpu_kernel_files.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/lib/c_text.h"
#include "client/lib/cuda_host_text.h"
#include "client/lib/opencl_host_text.h"

namespace hone::client {
namespace {

// A function of both host programs.
constexpr char kReadFile[] =
    R"c(/* The bytes of a file, which has `bytes` of them; any number if that is -1. A 0 follows. */
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

)c";

// The words for a kind of device and its files, in the texts.
struct Kind {
  const char* title;   // the kind of the kernels
  const char* binary;  // the suffix of the file that a program loads
  const char* about;   // a description of the files, after their name
  const char* host;
};
Kind KindOf(const target::GpuModule& module) {
  if (module.kind == target::Kind::kCuda) {
    return {"CUDA", ".cubin",
            " is their code for exactly this architecture, the files .ptx and .cu have it\n * as "
            "PTX for newer ones and as CUDA C++, ",
            kCudaHostText};
  }
  return {"OpenCL", ".cl", " is their source in OpenCL C, ", kOpenClHostText};
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
  const std::string prefix = absl::AsciiStrToUpper(facts.name);
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
  absl::StrAppend(&text, BufferMacros(prefix, workload,
                                      "constant: read by launches with prepack = 1, and by the "
                                      "others only what these do not pack"));
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
  const std::string prefix = absl::AsciiStrToUpper(facts.name);
  const std::string sizes = absl::StrJoin(
      BufferPrefixes(prefix, workload), ", ",
      [](std::string* out, const std::string& buffer) { absl::StrAppend(out, buffer, "_BYTES"); });
  const std::string text = absl::StrReplaceAll(KindOf(module).host, {{"@READ_FILE@", kReadFile}});
  return absl::StrReplaceAll(text, {{"@NAME@", facts.name},
                                    {"@PREFIX@", prefix},
                                    {"@FILES@", FileNames(workload)},
                                    {"@SIZES@", sizes},
                                    {"@INPUTS@", absl::StrCat(workload.Inputs().size())}});
}

}  // namespace hone::client
