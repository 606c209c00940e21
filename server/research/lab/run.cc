#include "server/research/lab/run.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "server/job/actor/compiler_environment.h"
#include "server/research/lab/recorded_search.h"

namespace hone::lab {
namespace {

constexpr uint64_t kDrawPurpose = 17;

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> Bench::Open(RecordedSet set) {
  auto bench = std::unique_ptr<Bench>(new Bench());
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(set.target));
  bench->builders_ = std::max(1, static_cast<int>(target.cores));
  HONE_ASSIGN_OR_RETURN(bench->spaces_,
                        job::OpenCompilerSpaces(set.spaces, set.target, /*threads=*/1));
  for (const std::string& text : set.spaces) bench->digests_.push_back(DigestOf(text).ToHex());
  for (const RecordedCandidate& candidate : set.candidates) {
    bench->measurements_.emplace(
        job::CandidateDigest({bench->digests_[candidate.space], candidate.decisions}),
        candidate.measurement);
  }
  bench->best_latency_ns_ = BestLatencyNs(set);
  bench->set_ = std::move(set);
  return bench;
}

int Bench::Find(const record::Candidate& candidate) const {
  const auto found = measurements_.find(job::CandidateDigest(candidate));
  return found == measurements_.end() ? -1 : found->second;
}

std::vector<search::Measured> Bench::Results() const {
  std::vector<search::Measured> results;
  for (const RecordedCandidate* candidate : FirstCandidates(set_)) {
    const Measurement& measured = set_.measurements[candidate->measurement];
    results.push_back({{digests_[candidate->space], candidate->decisions},
                       measured.outcome,
                       measured.latency_ns});
  }
  return results;
}

absl::StatusOr<std::string> Bench::SpaceText(const std::string& digest) const {
  const auto found = absl::c_find(digests_, digest);
  if (found == digests_.end()) return absl::NotFoundError(absl::StrCat("no space ", digest));
  return set_.spaces[found - digests_.begin()];
}

std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed) {
  Rng rng(seed, kDrawPurpose);
  for (size_t i = results.size(); i > 1; --i) std::swap(results[i - 1], results[rng.Below(i)]);
  results.resize(std::min(results.size(), count));
  return results;
}

job::Transfer TransferFromSet(const Bench& related, const job::TaskSpaces& spaces, uint64_t seed) {
  const job::RelatedWorkload workload{.results =
                                          DrawResults(related.Results(), kRelatedResults, seed)};
  return job::TransferFrom({workload}, spaces,
                           [&](const std::string& digest) { return related.SpaceText(digest); });
}

absl::StatusOr<RunResult> RunSearch(const Bench& bench, const RunOptions& options) {
  if (options.trials < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a run needs at least one trial, not ", options.trials));
  }
  const int64_t eighth = std::clamp<int64_t>(options.trials / 8, 4, 32);
  const int batch = options.batch > 0 ? options.batch : static_cast<int>(eighth);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<RecordedSearch> search,
                        RecordedSearch::Create(bench, options));
  const auto may_propose = [&] {
    return !search->result().exhausted && !search->found() && search->proposed() < options.trials;
  };
  const auto propose = [&]() -> absl::Status {
    if (!may_propose()) return absl::OkStatus();
    return search->Propose(
        static_cast<int>(std::min<int64_t>(batch, options.trials - search->proposed())));
  };
  // At the start of a job, the default schedule is being measured and there are no results yet.
  // Related results are processed during the first batch.
  HONE_RETURN_IF_ERROR(propose());
  HONE_RETURN_IF_ERROR(search->Train());
  HONE_RETURN_IF_ERROR(propose());
  while (search->waiting() > 0 && !search->found()) {
    search->Deliver();
    HONE_RETURN_IF_ERROR(search->Train());
    while (search->waiting() <= batch && may_propose()) HONE_RETURN_IF_ERROR(propose());
  }
  return search->result();
}

}  // namespace hone::lab
