#include "tests/oracle/own_check.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/target/thread_pool.h"
#include "worker/builder/build.h"
#include "worker/runner/check.h"
#include "worker/runner/inputs.h"
#include "worker/runner/kernel.h"
#include "worker/runner/reference.h"
#include "worker/runner/signature.h"
#include "worker/runner/tensor_memory.h"

namespace hone::oracle {
namespace {

std::string DigestText(const ir::Workload& workload) { return workload.StructuralDigest().ToHex(); }

absl::Status Succeeded(absl::string_view what, int32_t code) {
  if (code == target::kKernelOk) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, " returns ", code));
}

}  // namespace

absl::StatusOr<std::unique_ptr<OwnCheck>> OwnCheck::Create(
    std::shared_ptr<const ir::Workload> workload, const target::Target& target,
    std::string folder) {
  const record::BuildResponse response = builder::Build({.workload = workload->ToText(),
                                                         .target = target.ToText(),
                                                         .artifact_dir = folder,
                                                         .reference = true});
  if (response.outcome != record::Outcome::kOk) {
    return absl::InternalError(
        absl::StrCat("the reference kernel is not built: ", record::OutcomeName(response.outcome),
                     ": ", response.detail));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<runner::Kernel> kernel,
                        runner::LoadKernel(absl::StrCat(folder, "/", response.artifact_digest)));
  std::string path = absl::StrCat(folder, "/reference");
  HONE_RETURN_IF_ERROR(runner::MakeReference(
      *workload, runner::Inputs::Seeded(DigestText(*workload)), kernel.get(), path));
  return std::unique_ptr<OwnCheck>(new OwnCheck(std::move(workload), std::move(path)));
}

absl::Status OwnCheck::Check(const std::string& artifact_path, double tolerance) const {
  const runner::Signature signature = runner::SignatureOf(*workload_);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<runner::Reference> reference,
                        runner::Reference::Open(path_, DigestText(*workload_), signature));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<runner::Kernel> kernel,
                        runner::LoadKernel(artifact_path));
  HONE_RETURN_IF_ERROR(CheckOn(runner::Filling::kReal, *kernel, [&](size_t o, const void* data) {
    return runner::CheckOutput(signature.outputs[o], data,
                               reference->Of(runner::Filling::kReal, static_cast<int>(o)),
                               signature, tolerance);
  }));
  const auto expected = [&](size_t o) {
    return reference->Of(runner::Filling::kInteger, static_cast<int>(o));
  };
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    if (!runner::IsExact(signature.outputs[o], expected(o), signature)) return absl::OkStatus();
  }
  if (tolerance != 0) return absl::OkStatus();
  return CheckOn(runner::Filling::kInteger, *kernel, [&](size_t o, const void* data) {
    return runner::CheckExact(signature.outputs[o], data, expected(o), signature);
  });
}

absl::Status OwnCheck::CheckOn(
    runner::Filling filling, runner::Kernel& kernel,
    absl::FunctionRef<runner::CheckResult(size_t, const void*)> check) const {
  const runner::Signature signature = runner::SignatureOf(*workload_);
  std::vector<std::unique_ptr<runner::TensorMemory>> memory;
  std::vector<void*> buffers;
  const auto allocate = [&](int64_t bytes) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(memory.emplace_back(), runner::TensorMemory::Create(bytes, 0));
    buffers.push_back(memory.back()->data());
    return absl::OkStatus();
  };
  const uint64_t seed = runner::InputSeed(DigestText(*workload_));
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    HONE_RETURN_IF_ERROR(allocate(signature.inputs[i].bytes()));
    runner::FillTensor(signature.inputs[i], filling, seed, static_cast<int>(i), buffers.back());
  }
  for (const runner::TensorSpec& output : signature.outputs) {
    HONE_RETURN_IF_ERROR(allocate(output.bytes()));
  }
  const target::KernelLibrary& library = kernel.library();
  const HoneRuntime runtime = hone_threads(0);
  HONE_ASSIGN_OR_RETURN(const auto packed, runner::TensorMemory::Create(library.packed_bytes(), 0));
  HONE_ASSIGN_OR_RETURN(const auto workspace,
                        runner::TensorMemory::Create(library.WorkspaceBytes(runtime.threads), 0));
  if (library.packed_bytes() > 0) {
    HONE_RETURN_IF_ERROR(Succeeded("prepack", library.Prepack(buffers.data(), packed->data())));
  }
  HONE_RETURN_IF_ERROR(
      Succeeded("run", library.Run(buffers.data(), packed->data(), workspace->data(), &runtime)));
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    const runner::CheckResult result = check(o, buffers[signature.inputs.size() + o]);
    if (!result.ok) return absl::FailedPreconditionError(result.detail);
  }
  return absl::OkStatus();
}

}  // namespace hone::oracle
