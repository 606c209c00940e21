#include "client/lib/gpu_kernel_files.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/lib/c_text.h"
#include "client/lib/opencl_host_text.h"

namespace hone::client {
namespace {

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
  std::string text =
      absl::StrCat("/* OpenCL kernels made by Hone ", HONE_VERSION, " for ", facts.target_key,
                   ". They compute\n *\n", CommentLines(workload.ToText()), " *\n");
  if (facts.latency_ns > 0) {
    absl::StrAppendFormat(&text, " * Measured on this target: %.4g us, %.1f GFLOP/s.\n *\n",
                          facts.latency_ns / 1e3, facts.gflops);
  }
  absl::StrAppend(
      &text, " * ", facts.name, ".cl is their source in OpenCL C, ", facts.name,
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
/* One launch: in each dimension, grid[d] work groups of block[d] work items. */
typedef struct {
  const char* kernel;
  int prepack;
  size_t grid[3], block[3];
  size_t shared_bytes; /* local memory of a work group, which the kernel declares itself */
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

std::string OpenClHostProgram(const ir::Workload& workload, const GpuKernelFacts& facts) {
  const std::string prefix = absl::AsciiStrToUpper(facts.name);
  const std::string sizes = absl::StrJoin(
      BufferPrefixes(prefix, workload), ", ",
      [](std::string* out, const std::string& buffer) { absl::StrAppend(out, buffer, "_BYTES"); });
  return absl::StrReplaceAll(kOpenClHostText,
                             {{"@NAME@", facts.name},
                              {"@PREFIX@", prefix},
                              {"@FILES@", FileNames(workload)},
                              {"@SIZES@", sizes},
                              {"@INPUTS@", absl::StrCat(workload.Inputs().size())}});
}

}  // namespace hone::client
