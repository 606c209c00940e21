#include "worker/builder/toolchain.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "worker/builder/cuda_facts.h"
#include "worker/builder/link.h"
#include "worker/builder/nvrtc.h"

namespace hone::builder {
namespace {

// Compiles CUDA C++ with NVRTC to a module with a cubin for the target's exact architecture. Needs
// no GPU. Refuses kernels that the target's multiprocessors cannot run.
class Cuda final : public Toolchain {
 public:
  absl::string_view format() const override { return codegen::kCudaSource; }
  absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                  const std::string&) const override {
    if (!code.module.has_value()) {
      return absl::InvalidArgumentError("the code does not say how to launch its kernels");
    }
    HONE_ASSIGN_OR_RETURN(const Nvrtc* const nvrtc, Nvrtc::Loaded());
    const auto begin = std::chrono::steady_clock::now();
    HONE_ASSIGN_OR_RETURN(CompiledCuda compiled, nvrtc->Compile(code.bytes, target.cpu));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    Finished finished{.link_ms = took.count()};
    const auto facts = ReadCudaFacts(compiled.log);
    for (const target::GpuLaunch& launch : code.module->launches) {
      const auto found = facts.find(launch.kernel);
      if (found == facts.end()) continue;
      HONE_RETURN_IF_ERROR(CheckCudaLaunch(launch, found->second, target.gpu));
      finished.facts.spills += found->second.spill_bytes / 4;
    }
    finished.facts.code_bytes = static_cast<int64_t>(compiled.cubin.size());
    target::GpuModule module = *code.module;
    module.code = std::move(compiled.cubin);
    finished.binary = module.Encode();
    // A module that no runner can read is a bug of the back end.
    HONE_RETURN_IF_ERROR(target::GpuModule::Decode(finished.binary).status());
    finished.sources = target::GpuSources{code.bytes, std::move(compiled.ptx)}.Encode();
    return finished;
  }
  // Reports registers, spills and occupancy if NVRTC is installed.
  std::string Remarks(const codegen::Code& code, const target::Target& target) const override {
    const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Loaded();
    if (!nvrtc.ok() || !code.module.has_value()) return "";
    const absl::StatusOr<CompiledCuda> compiled = (*nvrtc)->Compile(code.bytes, target.cpu);
    if (!compiled.ok()) return absl::StrCat("\n// ", FirstLine(compiled.status()), "\n");
    const auto facts = ReadCudaFacts(compiled->log);
    if (facts.empty()) return "";
    std::string text = absl::StrCat("\n// NVRTC ", (*nvrtc)->Version(), " for ", target.cpu, ":\n");
    for (const target::GpuLaunch& launch : code.module->launches) {
      const auto found = facts.find(launch.kernel);
      if (found == facts.end()) continue;
      const CudaKernelFacts& kernel = found->second;
      absl::StrAppendFormat(&text,
                            "// %s: %d registers, %d bytes spilled, %d bytes of stack, %d bytes of "
                            "shared memory, occupancy %.0f %%\n",
                            launch.kernel, kernel.registers, kernel.spill_bytes, kernel.stack_bytes,
                            std::max(launch.shared_bytes, kernel.shared_bytes),
                            100 * Occupancy(launch, kernel, target.gpu));
    }
    return text;
  }

 private:
  static std::string FirstLine(const absl::Status& status) {
    return std::string(status.message().substr(0, status.message().find('\n')));
  }
};

// Links with LLD, and reads the facts with LLVM's disassembler.
class Elf final : public Toolchain {
 public:
  absl::string_view format() const override { return codegen::kElfObject; }
  absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                  const std::string& scratch_dir) const override {
    const auto begin = std::chrono::steady_clock::now();
    HONE_ASSIGN_OR_RETURN(
        std::string shared_object,
        LinkSharedObject(code.bytes, {.triple = target.triple, .scratch_dir = scratch_dir}));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    return Finished{.binary = std::move(shared_object),
                    .facts = ReadCodeFacts(code.bytes, target),
                    .link_ms = took.count()};
  }
};

// The driver of the device compiles the source when it loads the artifact.
class OpenClSource final : public Toolchain {
 public:
  absl::string_view format() const override { return codegen::kOpenClSource; }
  absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target&,
                                  const std::string&) const override {
    if (!code.module.has_value()) {
      return absl::InvalidArgumentError("the code does not say how to launch its kernels");
    }
    target::GpuModule module = *code.module;
    module.code = code.bytes;
    Finished finished{.binary = module.Encode()};
    finished.facts.code_bytes = static_cast<int64_t>(code.bytes.size());
    // A module that no runner can read is a bug of the back end.
    HONE_RETURN_IF_ERROR(target::GpuModule::Decode(finished.binary).status());
    return finished;
  }
};

// Returns null if no toolchain has the format.
const Toolchain* ToolchainOf(const codegen::Code& code) {
  // One line per toolchain.
  static const Toolchain* const toolchains[] = {
      new Elf,
      new OpenClSource,
      new Cuda,
  };
  for (const Toolchain* const toolchain : toolchains) {
    if (toolchain->format() == code.format) return toolchain;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Finished> Finish(const codegen::Code& code, const target::Target& target,
                                const std::string& scratch_dir) {
  const Toolchain* const toolchain = ToolchainOf(code);
  if (toolchain != nullptr) return toolchain->Finish(code, target, scratch_dir);
  return absl::InvalidArgumentError(absl::StrCat("no toolchain for the format ", code.format));
}

std::string RemarksOn(const codegen::Code& code, const target::Target& target) {
  const Toolchain* const toolchain = ToolchainOf(code);
  return toolchain == nullptr ? "" : toolchain->Remarks(code, target);
}

}  // namespace hone::builder
