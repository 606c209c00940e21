// What NVIDIA's compiler and the analytic features say about the schedules that a search for a GPU
// begins with. Nothing runs on a GPU, and no time is measured but that of the compiler.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/command_line.h"
#include "common/base/file.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "common/operator/operator.h"
#include "common/target/presets.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/search/draft_work.h"
#include "server/tuner/feature/gpu_terms.h"
#include "tests/bench/cuda/memory_counts.h"
#include "tests/fakes/manual_executor.h"
#include "worker/builder/build.h"
#include "worker/builder/cuda_facts.h"
#include "worker/builder/nvrtc.h"
#include "worker/compile/backend.h"
#include "worker/compile/lower/lower.h"

namespace hone::bench {
namespace {

constexpr const char* kWorkloads[] = {
    "matmul m=1024 n=1024 k=1024",
    "matmul m=4096 n=4096 k=4096",
    "matmul m=1024 n=1024 k=1024 dtype=f16",
    "quantized_matmul m=1024 n=1024 k=1024",
    // The convolutions of ResNet-18.
    "conv2d n=1 h=224 w=224 ci=3 co=64 k=7 s=2 p=3",
    "conv2d n=1 h=56 w=56 ci=64 co=64 k=3 s=1 p=1",
    "conv2d n=1 h=56 w=56 ci=64 co=128 k=3 s=2 p=1",
    "conv2d n=1 h=56 w=56 ci=64 co=128 k=1 s=2 p=0",
    "conv2d n=1 h=28 w=28 ci=128 co=128 k=3 s=1 p=1",
    "conv2d n=1 h=28 w=28 ci=128 co=256 k=3 s=2 p=1",
    "conv2d n=1 h=28 w=28 ci=128 co=256 k=1 s=2 p=0",
    "conv2d n=1 h=14 w=14 ci=256 co=256 k=3 s=1 p=1",
    "conv2d n=1 h=14 w=14 ci=256 co=512 k=3 s=2 p=1",
    "conv2d n=1 h=14 w=14 ci=256 co=512 k=1 s=2 p=0",
    "conv2d n=1 h=7 w=7 ci=512 co=512 k=3 s=1 p=1",
    "depthwise_conv2d n=1 h=112 w=112 c=32 k=3 s=1 p=1",
    "depthwise_conv2d n=1 h=14 w=14 c=512 k=3 s=1 p=1",
    "softmax m=1024 n=1024",
    "softmax m=2048 n=2048",
    "layer_norm m=1024 n=1024",
    "transpose m=4096 n=4096",
    "attention b=1 h=8 s=1024 d=64",
};

// One per architecture.
constexpr const char* kTargets[] = {"nvidia/t4", "nvidia/a100", "nvidia/a10",
                                    "nvidia/l4", "nvidia/h100", "nvidia/b200"};

constexpr int kSkipped = 77;  // the exit code if NVRTC is missing

struct Flags {
  std::vector<std::string> workloads, targets;
  std::string nvdisasm;
  std::string show;  // the folder for schedules and code
};

// Returns the schedule of the first trial of a job with default settings.
absl::StatusOr<std::string> DraftFor(const std::string& workload, const target::Target& target,
                                     job::TaskEnvironment& environment) {
  job::ManualExecutor executor;
  const job::JobServices services{.environment = &environment, .executor = &executor};
  job::DraftWork work(services, {});
  absl::StatusOr<std::string> trace = absl::InternalError("no answer");
  work.Draft({.workload = workload,
              .target = target.ToText(),
              .strategy = environment.default_strategy(),
              .cost_model = environment.default_cost_model()},
             /*check=*/nullptr,
             [&](absl::StatusOr<std::string> answer) { trace = std::move(answer); });
  executor.RunAll();
  return trace;
}

// Returns the listing of a cubin.
absl::StatusOr<std::string> Disassemble(const std::string& nvdisasm, const std::string& cubin) {
  std::string path = (std::filesystem::temp_directory_path() / "hone-cubin-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) return absl::InternalError("cannot make a temporary file");
  close(file);
  const absl::Cleanup remove = [&] { std::filesystem::remove(path); };
  HONE_RETURN_IF_ERROR(WriteFileAtomically(path, cubin));
  HONE_ASSIGN_OR_RETURN(const ProgramResult result, RunProgram({.words = {nvdisasm, "-c", path}}));
  if (!result.ok()) return absl::InternalError(absl::StrCat(nvdisasm, ": ", result.errors));
  return result.output;
}

std::string Share(const AccessCount& count) {
  return count.all == 0 ? "–" : absl::StrCat(count.wide, "/", count.all);
}

// Prints a row of the table for each kernel of a workload that is timed.
absl::Status PrintRows(const std::string& operation, const std::string& target_name,
                       job::TaskEnvironment& environment, const Flags& flags) {
  const std::vector<std::string> words = absl::StrSplit(operation, ' ');
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload,
                        op::BuildWorkload(words[0], absl::MakeConstSpan(words).subspan(1)));
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::TargetByName(target_name));
  HONE_ASSIGN_OR_RETURN(const std::string trace, DraftFor(workload.ToText(), target, environment));
  HONE_ASSIGN_OR_RETURN(schedule::TraceFile file, schedule::ParseTraceFile(trace));
  const std::vector<int64_t> decisions = file.parsed.decisions;
  HONE_ASSIGN_OR_RETURN(const builder::Source source,
                        builder::ReplayFile(std::move(file), decisions));
  HONE_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::Lower(source.program, target));
  HONE_ASSIGN_OR_RETURN(const codegen::Code code, codegen::Generate(lowered, target));
  if (!flags.show.empty()) {
    HONE_RETURN_IF_ERROR(MakeDirectories(flags.show));
    const std::string path = absl::StrCat(
        flags.show, "/",
        absl::StrReplaceAll(absl::StrCat(operation, " ", target.cpu), {{" ", "_"}, {"=", ""}}));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(path + ".trace", trace));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(path + ".cu", code.bytes));
  }

  HONE_ASSIGN_OR_RETURN(const builder::Nvrtc* const nvrtc, builder::Nvrtc::Loaded());
  const auto begin = std::chrono::steady_clock::now();
  HONE_ASSIGN_OR_RETURN(const builder::CompiledCuda compiled,
                        nvrtc->Compile(code.bytes, target.cpu));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const auto facts = builder::ReadCudaFacts(compiled.log);
  CountsByKernel counts;
  if (flags.nvdisasm.empty()) {
    counts = CountPtx(compiled.ptx);
  } else {
    HONE_ASSIGN_OR_RETURN(const std::string listing, Disassemble(flags.nvdisasm, compiled.cubin));
    counts = CountSass(listing);
  }

  feature::Nest nest;
  HONE_RETURN_IF_ERROR(nest.Analyze(source.program));
  const feature::GpuEstimate estimate =
      feature::EstimateGpuCost(nest, feature::GpuMachine::Of(target));
  size_t timed = 0;
  for (const target::GpuLaunch& launch : code.module->launches) {
    if (launch.prepack) continue;
    const size_t number = timed++;
    const auto found = facts.find(launch.kernel);
    if (found == facts.end()) return absl::InternalError("the compiler's log lacks a kernel");
    const builder::CudaKernelFacts& kernel = found->second;
    const MemoryCounts& memory = counts[launch.kernel];
    if (number >= estimate.launches.size())
      return absl::InternalError("the features have fewer launches than the code");
    const feature::GpuTerms& terms = estimate.launches[number];
    absl::PrintF(
        "| %s | %s | %s | %d | %d | %d | %d | %d | %.0f %% | %s | %s | %s | %.2f | %.0f %% "
        "| %.0f |\n",
        operation, launch.kernel, target.cpu, launch.Threads(),
        launch.grid[0] * launch.grid[1] * launch.grid[2], kernel.registers, kernel.spill_bytes,
        std::max(launch.shared_bytes, kernel.shared_bytes),
        100 * builder::Occupancy(launch, kernel, target.gpu), Share(memory.global_loads),
        Share(memory.shared_loads), Share(memory.global_stores), terms.conflicts,
        100 * terms.coalesced, took.count());
  }
  return absl::OkStatus();
}

absl::Status PrintTable(const Flags& flags) {
  HONE_ASSIGN_OR_RETURN(const builder::Nvrtc* const nvrtc, builder::Nvrtc::Loaded());
  const auto environment = job::MakeCompilerEnvironment(/*threads=*/1);
  absl::PrintF("NVRTC %s; loads and stores are counted in %s.\n\n", nvrtc->Version(),
               flags.nvdisasm.empty() ? "PTX" : "SASS");
  absl::PrintF(
      "| workload | kernel | for | threads | blocks | registers | spilled bytes | shared bytes | "
      "occupancy | global loads | shared loads | global stores | conflicts | coalesced | NVRTC, ms "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::string& workload : flags.workloads) {
    for (const std::string& target : flags.targets) {
      const absl::Status printed = PrintRows(workload, target, *environment, flags);
      if (!printed.ok()) {
        return absl::Status(printed.code(),
                            absl::StrCat(workload, " for ", target, ": ", printed.message()));
      }
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags{.workloads = {std::begin(kWorkloads), std::end(kWorkloads)},
              .targets = {std::begin(kTargets), std::end(kTargets)}};
  std::vector<std::string> workloads, targets;
  Command app(
      "Prints a table of the CUDA kernels that a search for a GPU begins with: what NVRTC and the "
      "analytic features say about them. Needs no GPU, and measures no time on one.",
      "cuda_kernels");
  app.Add("--op", workloads,
          "An operator with its shape, in quotes; may be repeated (default: a list of common ones)",
          {OneWordPerUse()});
  app.Add("--target", targets, "A preset; may be repeated (default: one for each architecture)",
          {OneWordPerUse()});
  app.Add("--nvdisasm", flags.nvdisasm,
          "NVIDIA's disassembler. Without it, loads and stores are counted in PTX",
          {ExistingFile()});
  app.Add("--show", flags.show, "A folder for the schedules and the code");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (!workloads.empty()) flags.workloads = workloads;
  if (!targets.empty()) flags.targets = targets;
  const absl::Status printed = PrintTable(flags);
  if (printed.ok()) return 0;
  std::fprintf(stderr, "cuda_kernels: %s\n", std::string(printed.message()).c_str());
  if (!builder::Nvrtc::Loaded().ok()) return kSkipped;
  return absl::IsInvalidArgument(printed) ? kUsageExitCode : 1;
}

}  // namespace
}  // namespace hone::bench

int main(int argc, char** argv) { return hone::bench::Main(argc, argv); }
