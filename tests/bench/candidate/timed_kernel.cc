#include "tests/bench/candidate/timed_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/record/artifact.h"
#include "common/target/thread_pool.h"
#include "worker/builder/build.h"

namespace hone::bench {

namespace {

std::shared_ptr<std::byte> Zeros(int64_t bytes) {
  const int64_t alignment = target::kBufferAlignment;
  const int64_t rounded = (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  std::shared_ptr<std::byte> data(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)),
                                  [](std::byte* memory) { std::free(memory); });
  std::memset(data.get(), 0, rounded);
  return data;
}

}  // namespace

double ProcessorSeconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::StatusOr<std::unique_ptr<TimedKernel>> TimedKernel::Build(
    const ir::Workload& workload, const std::string& trace_file,
    const std::vector<int64_t>& decisions, const target::Target& target,
    const std::string& folder) {
  std::unique_ptr<TimedKernel> kernel(new TimedKernel);
  const double begin = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const record::BuildResponse built = builder::Build({.workload = workload.ToText(),
                                                      .space = trace_file,
                                                      .decisions = decisions,
                                                      .target = target.ToText(),
                                                      .artifact_dir = folder});
  kernel->build_milliseconds_ = 1e3 * (ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
  if (built.outcome != record::Outcome::kOk) return absl::InvalidArgumentError(built.detail);
  HONE_ASSIGN_OR_RETURN(const std::string bytes,
                        ReadFile(absl::StrCat(folder, "/", built.artifact_digest)));
  HONE_ASSIGN_OR_RETURN(record::Artifact artifact, record::DecodeArtifact(bytes));
  kernel->object_bytes_ = static_cast<int64_t>(artifact.object.size());
  kernel->shared_object_ = std::move(artifact.shared_object);
  for (const ir::BufferId id : workload.Inputs()) kernel->tensors_.push_back(workload.tensors[id]);
  kernel->inputs_ = static_cast<int>(kernel->tensors_.size());
  for (const ir::BufferId id : workload.Outputs()) kernel->tensors_.push_back(workload.tensors[id]);
  return kernel;
}

absl::Status TimedKernel::Load() {
  HONE_ASSIGN_OR_RETURN(loaded_, target::LoadedKernel::LoadSharedObject(shared_object_));
  Rng rng(1, 1);
  for (size_t t = 0; t < tensors_.size(); ++t) {
    memory_.push_back(Zeros(tensors_[t].bytes()));
    buffers_.push_back(memory_.back().get());
    if (static_cast<int>(t) >= inputs_) continue;
    for (int64_t e = 0; e < ir::ElementsOf(tensors_[t].shape); ++e)
      ir::WriteElement(tensors_[t].dtype, buffers_[t], e, rng.Uniform());
  }
  const target::KernelLibrary& library = loaded_->library();
  runtime_ = hone_threads(1);
  workspace_ = Zeros(library.WorkspaceBytes(1));
  packed_ = Zeros(library.packed_bytes());
  HONE_RETURN_IF_ERROR(
      target::KernelStatusToStatus(library.Prepack(buffers_.data(), packed_.get())));
  return Run();
}

absl::Status TimedKernel::Run() {
  return target::KernelStatusToStatus(
      loaded_->library().Run(buffers_.data(), packed_.get(), workspace_.get(), &runtime_));
}

double TimedKernel::Nanoseconds(double at_least_seconds) {
  const double begin = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
  double now = begin;
  int calls = 0;
  for (; now - begin < at_least_seconds || calls < 2; ++calls) {
    (void)Run();
    now = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
  }
  return (now - begin) / calls * 1e9;
}

}  // namespace hone::bench
