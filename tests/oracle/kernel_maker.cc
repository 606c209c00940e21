#include "tests/oracle/kernel_maker.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/intrinsic.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/record/artifact.h"
#include "common/schedule/trace.h"
#include "server/tuner/space/generate.h"
#include "tests/common/schedule/random_trace.h"
#include "tests/oracle/own_check.h"
#include "worker/builder/build.h"

namespace hone::oracle {
namespace {

// The tolerance of the relaxed job. Its design spaces are made in addition to those of a strict
// job.
constexpr double kRelaxed = 1e-3;
// Design spaces are also made for this target. They differ, and making them must not fail.
constexpr char kOtherTarget[] = "x86-avx512";
// The number of primitives that a random trace tries.
constexpr int kSteps = 16;

struct Source {
  std::shared_ptr<const ir::Workload> workload;
  std::unique_ptr<space::DesignSpace> given;  // for a trace file
  std::vector<int64_t> decisions;             // of the trace file
};

absl::StatusOr<Source> ReadSource(const Request& request) {
  Source source;
  if (request.source == Request::Source::kTrace) {
    HONE_ASSIGN_OR_RETURN(source.given,
                          space::DesignSpace::FromText(request.text, "given", &source.decisions));
    source.workload = source.given->workload();
    return source;
  }
  std::vector<std::string> words = absl::StrSplit(request.text, ' ', absl::SkipEmpty());
  if (words.empty()) return absl::InvalidArgumentError("the request names no operator");
  HONE_ASSIGN_OR_RETURN(
      ir::Workload workload,
      request.source == Request::Source::kWorkload
          ? ir::ParseWorkload(request.text)
          : op::BuildWorkload(words[0], std::vector<std::string>(words.begin() + 1, words.end())));
  source.workload = std::make_shared<const ir::Workload>(std::move(workload));
  return source;
}

// The design spaces of both jobs. `relaxed` has only those that are not in `strict`.
struct Spaces {
  std::vector<std::unique_ptr<space::DesignSpace>> strict, relaxed;
};

class KernelMaker {
 public:
  KernelMaker(const Request& request, target::Target target, const Listener& listener)
      : request_(request),
        target_(std::move(target)),
        listener_(listener),
        rng_(request.seed, /*purpose*/ 1) {}

  absl::Status Run() {
    HONE_ASSIGN_OR_RETURN(const Source source, ReadSource(request_));
    workload_ = source.workload;
    listener_.on_workload(*workload_);
    listener_.on_step("make Hone's reference");
    absl::StatusOr<std::unique_ptr<OwnCheck>> check =
        OwnCheck::Create(workload_, target_, request_.folder);
    listener_.on_reference(check.status());
    if (check.ok()) own_check_ = *std::move(check);
    if (source.given != nullptr) HONE_RETURN_IF_ERROR(BuildGiven(source));
    HONE_RETURN_IF_ERROR(BuildDefault());
    HONE_RETURN_IF_ERROR(BuildCandidates());
    return BuildRandomTraces();
  }

 private:
  absl::StatusOr<Spaces> MakeSpaces(const target::Target& target) {
    Spaces spaces;
    listener_.on_step(absl::StrCat("make the design spaces of a strict job on ", target.Key()));
    HONE_ASSIGN_OR_RETURN(spaces.strict, space::GenerateDesignSpaces(workload_, target));
    listener_.on_step(absl::StrCat("make the design spaces of a job with tolerance ", kRelaxed,
                                   " on ", target.Key()));
    HONE_ASSIGN_OR_RETURN(spaces.relaxed, space::GenerateDesignSpaces(workload_, target, kRelaxed));
    std::set<std::string> known;
    for (const auto& space : spaces.strict) known.insert(space->digest());
    std::erase_if(spaces.relaxed,
                  [&](const auto& space) { return known.contains(space->digest()); });
    return spaces;
  }

  absl::Status BuildDefault() {
    listener_.on_step("make the default schedule");
    HONE_ASSIGN_OR_RETURN(const auto space, space::DefaultCandidate(workload_, target_));
    return BuildOne("default", /*tolerance=*/0, space->text(), {},
                    schedule::TraceFileText(*workload_, space->trace()));
  }

  absl::Status BuildGiven(const Source& source) {
    std::vector<int64_t> decisions = source.decisions;
    if (decisions.empty()) {
      HONE_ASSIGN_OR_RETURN(decisions, source.given->Sample(rng_));
    }
    return BuildSpace(*source.given, request_.tolerance, decisions);
  }

  absl::Status BuildCandidates() {
    // Makes the spaces even if no candidates are requested, because making them must not fail.
    HONE_ASSIGN_OR_RETURN(const Spaces spaces, MakeSpaces(target_));
    HONE_ASSIGN_OR_RETURN(const target::Target other, target::TargetByName(kOtherTarget));
    HONE_RETURN_IF_ERROR(MakeSpaces(other).status());
    for (int i = 0; i < request_.candidates; ++i) {
      const bool relaxed = !spaces.relaxed.empty() && rng_.Below(2) == 0;
      const auto& drawn = relaxed ? spaces.relaxed : spaces.strict;
      const space::DesignSpace& space = *drawn[rng_.Below(drawn.size())];
      const double tolerance = relaxed ? kRelaxed : 0;
      listener_.on_step(absl::StrCat("draw a candidate of design space ", space.name()));
      const absl::StatusOr<std::vector<int64_t>> decisions = space.Sample(rng_);
      if (!decisions.ok()) {
        listener_.on_built({.origin = space.name(),
                            .tolerance = tolerance,
                            .outcome = record::Outcome::kInvalid,
                            .detail = std::string(decisions.status().message())});
        continue;
      }
      HONE_RETURN_IF_ERROR(BuildSpace(space, tolerance, *decisions));
    }
    return absl::OkStatus();
  }

  absl::Status BuildRandomTraces() {
    for (int i = 0; i < request_.random_traces; ++i) {
      listener_.on_step("draw a random trace");
      const schedule::RandomTrace random =
          WithCode(schedule::MakeRandomTrace(workload_, rng_(), kSteps));
      HONE_RETURN_IF_ERROR(random.refusals);
      HONE_RETURN_IF_ERROR(BuildOne(
          "random trace", /*tolerance=*/0, schedule::TraceFileText(*workload_, random.trace),
          random.decisions, schedule::TraceFileText(*workload_, random.trace, random.decisions)));
    }
    return absl::OkStatus();
  }

  // CPUs have no code for GPU axes, and this target may lack an instruction.
  schedule::RandomTrace WithCode(schedule::RandomTrace random) const {
    const size_t removed = std::erase_if(random.steps, [&](const schedule::Step& step) {
      if (step.primitive == "bind") return true;
      if (step.primitive != "tensorize") return false;
      const ir::Intrinsic& intrinsic = *ir::FindIntrinsic(step.text);
      return intrinsic.arch != target_.arch || !target_.HasFeature(intrinsic.feature);
    });
    return removed == 0 ? random : schedule::TakeSteps(random.workload, random.steps);
  }

  absl::Status BuildSpace(const space::DesignSpace& space, double tolerance,
                          const std::vector<int64_t>& decisions) {
    return BuildOne(space.name(), tolerance, space.text(), decisions,
                    schedule::TraceFileText(*space.workload(), space.trace(), decisions));
  }

  // Builds a kernel as a worker does, and writes its shared object beside the artifact.
  absl::Status BuildOne(std::string origin, double tolerance, const std::string& space,
                        const std::vector<int64_t>& decisions, std::string trace) {
    listener_.on_step(absl::StrCat("build this schedule (", origin, "):\n", trace));
    const record::BuildResponse response = builder::Build({.workload = workload_->ToText(),
                                                           .space = space,
                                                           .decisions = decisions,
                                                           .target = target_.ToText(),
                                                           .artifact_dir = request_.folder});
    Built built{.origin = std::move(origin),
                .tolerance = tolerance,
                .outcome = response.outcome,
                .detail = response.detail,
                .trace = std::move(trace)};
    if (response.outcome == record::Outcome::kOk) {
      const std::string artifact = absl::StrCat(request_.folder, "/", response.artifact_digest);
      HONE_RETURN_IF_ERROR(WriteSharedObject(artifact, built));
      if (own_check_ != nullptr) {
        listener_.on_step(absl::StrCat("run as Hone's runner does (", built.origin, ")"));
        built.own_check = std::string(own_check_->Check(artifact, tolerance).message());
      }
    }
    listener_.on_built(built);
    return absl::OkStatus();
  }

  absl::Status WriteSharedObject(const std::string& artifact_path, Built& built) {
    HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(artifact_path));
    HONE_ASSIGN_OR_RETURN(const record::Artifact artifact, record::DecodeArtifact(bytes));
    built.shared_object = absl::StrCat(request_.folder, "/kernel", kernels_++, ".so");
    return WriteFileAtomically(built.shared_object, artifact.shared_object, Durability::kProcess);
  }

  const Request& request_;
  const target::Target target_;
  const Listener& listener_;
  Rng rng_;
  std::shared_ptr<const ir::Workload> workload_;
  std::unique_ptr<OwnCheck> own_check_;  // null if Hone has no reference of the workload
  int kernels_ = 0;
};

}  // namespace

absl::Status MakeKernels(const Request& request, const Listener& listener) {
  HONE_ASSIGN_OR_RETURN(target::Target target, target::TargetByName(request.target));
  target.cores = request.threads;
  return KernelMaker(request, std::move(target), listener).Run();
}

}  // namespace hone::oracle
