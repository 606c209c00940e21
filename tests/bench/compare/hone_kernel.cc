#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/target/kernel_abi.h"
#include "tests/bench/compare/contender.h"

namespace hone::compare {
namespace {

std::shared_ptr<void> Aligned(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  const int64_t alignment = target::kBufferAlignment;
  return std::shared_ptr<void>(
      std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment), std::free);
}

class HoneKernel final : public Contender {
 public:
  HoneKernel(std::shared_ptr<void> library, const Buffers& buffers)
      : library_(std::move(library)), buffers_(buffers) {}

  absl::Status Prepare() {
    const auto abi = Symbol<target::AbiFunction>(target::kAbiSymbol);
    const auto workspace = Symbol<target::SizeFunction>(target::kWorkspaceSymbol);
    const auto packed = Symbol<target::SizeFunction>(target::kPackedSymbol);
    const auto prepack = Symbol<target::PrepackFunction>(target::kPrepackSymbol);
    run_ = Symbol<target::RunFunction>(target::kRunSymbol);
    if (abi == nullptr || workspace == nullptr || packed == nullptr || run_ == nullptr ||
        abi() != target::kKernelAbiVersion) {
      return absl::FailedPreconditionError(
          "the shared object is no kernel of this version's interface");
    }
    workspace_ = Aligned(workspace());
    packed_ = Aligned(packed());
    if (packed_ != nullptr) {
      if (prepack == nullptr)
        return absl::FailedPreconditionError(
            "the kernel wants packed constants and cannot pack them");
      HONE_RETURN_IF_ERROR(Explain(prepack(buffers_.pointers(), packed_.get())));
    }
    return absl::OkStatus();
  }

  std::string name() const override { return "Hone"; }
  absl::Status Run() override {
    return Explain(run_(buffers_.pointers(), packed_.get(), workspace_.get()));
  }

 private:
  template <typename Function>
  Function Symbol(const char* name) const {
    return reinterpret_cast<Function>(dlsym(library_.get(), name));
  }
  static absl::Status Explain(int32_t code) {
    if (code == target::kKernelOk) return absl::OkStatus();
    if (code == target::kKernelUnsupportedCpu)
      return absl::FailedPreconditionError("the kernel is for another CPU");
    return absl::InternalError(absl::StrCat("the kernel returned ", code));
  }

  const std::shared_ptr<void> library_;
  const Buffers& buffers_;
  std::shared_ptr<void> workspace_;
  std::shared_ptr<void> packed_;
  target::RunFunction run_ = nullptr;
};

}  // namespace

absl::StatusOr<Exported> FindExported(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> objects;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".so") objects.push_back(entry.path());
  }
  if (objects.empty())
    return absl::NotFoundError(
        absl::StrCat("no exported kernel in ", folder, "; write one with: hone export"));
  const std::filesystem::path path = *std::min_element(objects.begin(), objects.end());
  Exported exported;
  exported.name = path.stem().string();
  exported.shared_object = std::filesystem::absolute(path).string();
  HONE_ASSIGN_OR_RETURN(const std::string text,
                        ReadFile(std::filesystem::path(path).replace_extension(".hone").string()));
  HONE_ASSIGN_OR_RETURN(exported.workload, ir::ParseWorkload(text));
  return exported;
}

absl::StatusOr<std::unique_ptr<Contender>> MakeHoneKernel(const Exported& exported,
                                                          const Buffers& buffers) {
  void* library = dlopen(exported.shared_object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::FailedPreconditionError(dlerror());
  auto kernel = std::make_unique<HoneKernel>(std::shared_ptr<void>(library, dlclose), buffers);
  HONE_RETURN_IF_ERROR(kernel->Prepare());
  return kernel;
}

}  // namespace hone::compare
