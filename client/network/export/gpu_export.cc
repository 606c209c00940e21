#include "client/network/export/gpu_export.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/network/export/c_text.h"
#include "client/network/export/gpu_network_files.h"
#include "client/network/plan/gpu_plan.h"
#include "client/network/plan/weights_writer.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_sources.h"
#include "common/target/kernel_memory.h"

namespace hone::network {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 8;  // in the name of a kernel

// The files of a kernel by suffix, which is one of those above. A program loads the first one.
using KernelFiles = std::vector<std::pair<const char*, std::string>>;

absl::StatusOr<KernelFiles> FilesOf(const NetworkKernel& kernel) {
  if (kernel.module->kind != target::Kind::kCuda) return KernelFiles{{".cl", kernel.module->code}};
  HONE_ASSIGN_OR_RETURN(const target::GpuSources sources,
                        target::GpuSources::Decode(kernel.object));
  return KernelFiles{
      {".cubin", kernel.module->code}, {".ptx", sources.assembly}, {".cu", sources.source}};
}

// Writes the constants, and sets where each buffer's content is.
absl::Status WriteConstants(const graph::Graph& graph, const std::string& path,
                            GpuNetworkFacts& facts) {
  facts.weights_bytes = sizeof(HoneWeightsHeader);
  for (const GpuPlan::Buffer& buffer : facts.gpu_plan->buffers) {
    const bool constant = buffer.constant != graph::kNoValue;
    facts.weights_at.push_back(constant ? facts.weights_bytes : -1);
    if (constant) facts.weights_bytes += target::AlignedBytes(buffer.bytes);
  }
  HONE_ASSIGN_OR_RETURN(WeightsWriter writer, WeightsWriter::Create(path, facts.weights_bytes));
  for (size_t b = 0; b < facts.weights_at.size(); ++b) {
    if (facts.weights_at[b] < 0) continue;
    HONE_RETURN_IF_ERROR(writer.Write(
        facts.weights_at[b], graph.value(facts.gpu_plan->buffers[b].constant).constant->bytes()));
  }
  HONE_ASSIGN_OR_RETURN(facts.weights, writer.Finish());
  return absl::OkStatus();
}

}  // namespace

std::string GpuKernelFolder(const std::string& name) { return absl::StrCat(name, "_kernels"); }

absl::StatusOr<std::vector<std::string>> WriteGpuFiles(const PlannedNetwork& planned,
                                                       const graph::Graph& graph,
                                                       absl::Span<const NetworkKernel> kernels,
                                                       const std::string& name,
                                                       const std::string& folder) {
  const GpuPlan plan = MakeGpuPlan(planned, graph, kernels);
  GpuNetworkFacts facts{.name = name, .plan = &planned.plan, .gpu_plan = &plan, .kernels = kernels};
  std::vector<std::string> names;
  const auto write = [&](const std::string& file, const std::string& content) {
    names.push_back(file);
    return WriteFileAtomically(absl::StrCat(folder, "/", file), content);
  };
  std::error_code error;
  fs::create_directories(absl::StrCat(folder, "/", GpuKernelFolder(name)), error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("make a folder in ", folder));
  for (size_t t = 0; t < kernels.size(); ++t) {
    HONE_ASSIGN_OR_RETURN(const KernelFiles files, FilesOf(kernels[t]));
    const std::string kernel =
        absl::StrFormat("%s/%03d_%s_%s", GpuKernelFolder(name), t,
                        client::CIdentifier(planned.plan.kernels[t].name),
                        DigestOf(files[0].second).ToHex().substr(0, kHashDigits));
    facts.modules.push_back(kernel + files[0].first);
    for (const auto& [suffix, content] : files) {
      HONE_RETURN_IF_ERROR(write(kernel + suffix, content));
    }
  }
  const std::string weights = absl::StrCat(name, ".weights");
  HONE_RETURN_IF_ERROR(WriteConstants(graph, absl::StrCat(folder, "/", weights), facts));
  names.push_back(weights);
  HONE_RETURN_IF_ERROR(write(name + ".json", GpuNetworkJson(facts)));
  HONE_RETURN_IF_ERROR(write(name + ".h", GpuNetworkHeader(facts)));
  HONE_RETURN_IF_ERROR(write(name + "_host.c", GpuNetworkHostProgram(facts)));
  return names;
}

}  // namespace hone::network
