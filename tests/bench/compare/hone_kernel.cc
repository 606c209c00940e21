#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/target/thread_pool.h"
#include "tests/bench/compare/contender.h"
#include "worker/runner/kernel.h"

namespace hone::compare {
namespace {

std::shared_ptr<void> Aligned(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  const int64_t alignment = target::kBufferAlignment;
  return std::shared_ptr<void>(
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment), std::free);
}

absl::Status Explain(int32_t code) {
  if (code == target::kKernelOk) return absl::OkStatus();
  if (code == target::kKernelUnsupportedCpu)
    return absl::FailedPreconditionError("the kernel is for another CPU");
  return absl::InternalError(absl::StrCat("the kernel returned ", code));
}

class HoneKernel final : public Contender {
 public:
  HoneKernel(std::string name, std::unique_ptr<runner::Kernel> kernel, const Buffers& buffers)
      : name_(std::move(name)),
        kernel_(std::move(kernel)),
        buffers_(buffers),
        runtime_(hone_threads(0)),
        workspace_(Aligned(kernel_->library().WorkspaceBytes(runtime_.threads))),
        packed_(Aligned(kernel_->library().packed_bytes())) {}

  absl::Status Prepack() {
    if (packed_ == nullptr) return absl::OkStatus();
    return Explain(kernel_->library().Prepack(buffers_.pointers(), packed_.get()));
  }

  std::string name() const override { return name_; }
  absl::Status Run() override {
    return Explain(
        kernel_->library().Run(buffers_.pointers(), packed_.get(), workspace_.get(), &runtime_));
  }

 private:
  const std::string name_;
  const std::unique_ptr<runner::Kernel> kernel_;
  const Buffers& buffers_;
  const HoneRuntime runtime_;
  const std::shared_ptr<void> workspace_;
  const std::shared_ptr<void> packed_;
};

}  // namespace

absl::StatusOr<HoneSource> FindExported(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> objects;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".so") objects.push_back(entry.path());
  }
  if (objects.empty())
    return absl::NotFoundError(
        absl::StrCat("no exported kernel in ", folder, "; write one with: hone export"));
  std::filesystem::path path = *std::min_element(objects.begin(), objects.end());
  HoneSource source{.name = "Hone"};
  HONE_ASSIGN_OR_RETURN(source.shared_object, ReadFile(path.string()));
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path.replace_extension(".hone").string()));
  HONE_ASSIGN_OR_RETURN(source.workload, ir::ParseWorkload(text));
  return source;
}

absl::StatusOr<std::unique_ptr<Contender>> MakeHoneKernel(const HoneSource& source,
                                                          const Buffers& buffers) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<runner::Kernel> loaded,
                        runner::Kernel::LoadSharedObject(source.shared_object));
  auto kernel = std::make_unique<HoneKernel>(source.name, std::move(loaded), buffers);
  HONE_RETURN_IF_ERROR(kernel->Prepack());
  return kernel;
}

}  // namespace hone::compare
