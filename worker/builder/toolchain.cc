#include "worker/builder/toolchain.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "worker/builder/cuda_toolchain.h"
#include "worker/builder/link.h"

namespace hone::builder {
namespace {

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
      CudaToolchain(),
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
