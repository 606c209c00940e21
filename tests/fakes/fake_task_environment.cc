#include "tests/fakes/fake_task_environment.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "server/job/search/draft_work.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/model_file.h"

namespace hone::job {
namespace {

struct Parsed {
  std::string name;
  int64_t size = 0;
};

absl::StatusOr<Parsed> Parse(const std::string& workload) {
  const std::vector<std::string> words = absl::StrSplit(workload, ' ');
  Parsed parsed;
  if (words.size() != 3 || words[0] != "fake" || words[1].empty() ||
      !absl::SimpleAtoi(words[2], &parsed.size) || parsed.size < 1) {
    return absl::InvalidArgumentError("1:1: not a fake workload");
  }
  parsed.name = words[1];
  return parsed;
}

// "1,2,3".
absl::StatusOr<std::vector<int64_t>> ParseGiven(const std::string& space) {
  std::vector<int64_t> decisions;
  for (absl::string_view word : absl::StrSplit(space, ',')) {
    if (!absl::SimpleAtoi(word, &decisions.emplace_back())) {
      return absl::InvalidArgumentError("1:1: not a fake space");
    }
  }
  return decisions;
}

// FakeTaskEnvironment::AtStep of one workload.
class Steps {
 public:
  Steps(std::shared_ptr<FakeTaskEnvironment::AtStep> at, std::string name, StopCheck check)
      : at_(std::move(at)), name_(std::move(name)), check_(std::move(check)) {}
  void At(absl::string_view step) const {
    if (*at_ != nullptr) (*at_)(step, name_);
  }
  absl::Status Check() const { return check_ == nullptr ? absl::OkStatus() : check_(); }

 private:
  std::shared_ptr<FakeTaskEnvironment::AtStep> at_;
  std::string name_;
  StopCheck check_;
};

// Proposes the candidates with the best predictions from a random pool that is eight times as large
// as the batch. Never proposes a candidate twice.
class PickyStrategy final : public search::SearchStrategy {
 public:
  PickyStrategy(Steps steps, std::string space, int64_t size, std::optional<record::Candidate> only,
                uint64_t seed)
      : steps_(std::move(steps)),
        space_(std::move(space)),
        size_(size),
        only_(std::move(only)),
        seed_(seed) {}
  absl::string_view name() const override { return "picky"; }

  absl::StatusOr<std::vector<record::Candidate>> Propose(
      int n, uint64_t event, const cost_model::CostModel* model) override {
    steps_.At("propose");
    HONE_RETURN_IF_ERROR(steps_.Check());
    if (only_) {
      if (!known_.insert(only_->decisions).second) return std::vector<record::Candidate>{};
      return std::vector<record::Candidate>{*only_};
    }
    Rng rng(seed_, event);
    std::vector<std::vector<int64_t>> pool;
    std::set<std::vector<int64_t>> drawn = known_;
    for (int i = 0; i < 64 * n && static_cast<int>(pool.size()) < 8 * n; ++i) {
      std::vector<int64_t> decisions;
      for (int d = 0; d < 3; ++d) decisions.push_back(static_cast<int64_t>(rng.Below(size_)));
      if (drawn.insert(decisions).second) pool.push_back(decisions);
    }
    cost_model::FeatureMatrix features{.columns = 3};
    for (const auto& decisions : pool) {
      const std::vector<float> row(decisions.begin(), decisions.end());
      features.Append(row, 1);
    }
    HONE_ASSIGN_OR_RETURN(const cost_model::Prediction prediction, model->Predict(features));
    std::vector<size_t> order;
    for (size_t i = 0; i < pool.size(); ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return prediction.mean[a] > prediction.mean[b]; });
    std::vector<record::Candidate> candidates;
    for (size_t i : order) {
      if (static_cast<int>(candidates.size()) == n) break;
      if (!known_.insert(pool[i]).second) continue;
      candidates.push_back({space_, pool[i]});
    }
    return candidates;
  }
  void Tell(absl::Span<const search::Measured> results) override {
    for (const search::Measured& result : results) known_.insert(result.candidate.decisions);
  }

 private:
  const Steps steps_;
  const std::string space_;
  const int64_t size_;
  const std::optional<record::Candidate> only_;
  const uint64_t seed_;
  std::set<std::vector<int64_t>> known_;
};

class NearestModel final : public cost_model::CostModel {
 public:
  NearestModel(const char* name, const char* feature_set)
      : name_(name), feature_set_(feature_set) {}
  absl::string_view name() const override { return name_; }
  absl::string_view feature_set() const override { return feature_set_; }
  std::string Summary() const override {
    return absl::StrCat(R"({"candidates": )", features_.candidates(), "}");
  }
  using CostModel::Update;
  absl::Status Update(const cost_model::FeatureMatrix& features,
                      const cost_model::Labels& labels) override {
    features_ = features;
    throughput_.assign(labels.throughput.begin(), labels.throughput.end());
    return absl::OkStatus();
  }
  absl::StatusOr<cost_model::Prediction> Predict(
      const cost_model::FeatureMatrix& features) const override {
    cost_model::Prediction prediction;
    for (int i = 0; i < features.candidates(); ++i) {
      double nearest = INFINITY, score = 0;
      for (int j = 0; j < features_.candidates(); ++j) {
        double distance = 0;
        for (int c = 0; c < 3; ++c) {
          distance += std::abs(features.values[3 * i + c] - features_.values[3 * j + c]);
        }
        if (distance < nearest) nearest = distance, score = throughput_[j];
      }
      prediction.mean.push_back(score);
    }
    return prediction;
  }
  absl::StatusOr<std::string> Save() const override {
    cost_model::ByteWriter writer;
    writer.Add<uint32_t>(features_.candidates());
    for (const float value : features_.values) writer.Add(value);
    for (const double throughput : throughput_) writer.Add(throughput);
    return cost_model::EncodeModel(Header(), std::move(writer).Finish());
  }
  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const cost_model::ModelFile file,
                          cost_model::DecodeModel(bytes, Header()));
    cost_model::ByteReader reader(file.payload);
    HONE_ASSIGN_OR_RETURN(const uint32_t candidates, reader.Read<uint32_t>());
    features_ = {.columns = 3};
    throughput_.clear();
    for (uint32_t i = 0; i < candidates; ++i) {
      float row[3];
      for (float& value : row) {
        HONE_ASSIGN_OR_RETURN(value, reader.Read<float>());
      }
      features_.Append(row, 1);
    }
    for (uint32_t i = 0; i < candidates; ++i) {
      HONE_ASSIGN_OR_RETURN(throughput_.emplace_back(), reader.Read<double>());
    }
    return absl::OkStatus();
  }

 private:
  cost_model::ModelHeader Header() const {
    return {.name = name_,
            .version = 7,
            .feature_set = feature_set_,
            .columns = static_cast<uint32_t>(features_.columns)};
  }

  const std::string name_, feature_set_;
  cost_model::FeatureMatrix features_;
  std::vector<double> throughput_;
};

class FakeSpaces final : public TaskSpaces {
 public:
  FakeSpaces(const Parsed& parsed, const std::vector<int64_t>& only, uint64_t stream, Steps steps)
      : size_(parsed.size), stream_(stream), steps_(std::move(steps)) {
    for (const char* kind : {"searched", "default"}) {
      const std::string text = absl::StrCat("space of ", parsed.name, " ", kind);
      spaces_.push_back({DigestOf(text).ToHex(), text});
    }
    if (!only.empty()) only_ = {spaces_[0].digest, only};
  }
  const std::vector<SpaceInfo>& spaces() const override { return spaces_; }
  record::Candidate default_schedule() const override { return {spaces_[1].digest, {}}; }
  std::optional<record::Candidate> only_candidate() const override { return only_; }
  bool IsSearched(const record::Candidate& candidate) const override {
    return candidate.space_digest == spaces_[0].digest;
  }
  bool IsLegal(const record::Candidate& candidate) const override {
    return IsSearched(candidate) && candidate.decisions.size() == 3;
  }
  absl::StatusOr<std::unique_ptr<search::SearchStrategy>> CreateStrategy(const std::string& name,
                                                                         uint64_t seed,
                                                                         bool) const override {
    if (name != "picky") return absl::NotFoundError("there is: picky");
    return std::make_unique<PickyStrategy>(steps_, spaces_[0].digest, size_, only_, seed + stream_);
  }
  absl::Status CheckFeatureSet(const std::string& feature_set) const override {
    return feature_set == "decisions" ? absl::OkStatus()
                                      : absl::InvalidArgumentError("there is: decisions");
  }
  absl::Status AppendFeatures(const std::string&, const record::Candidate& candidate,
                              cost_model::FeatureMatrix* matrix) const override {
    steps_.At("train");
    if (candidate.decisions.size() != 3) return absl::InvalidArgumentError("not three decisions");
    matrix->columns = 3;
    const std::vector<float> row(candidate.decisions.begin(), candidate.decisions.end());
    matrix->Append(row, 1);
    return absl::OkStatus();
  }
  absl::StatusOr<record::Candidate> Adapt(const std::string& space,
                                          const std::vector<int64_t>& decisions) const override {
    if (!absl::EndsWith(space, "searched")) return absl::NotFoundError("another structure");
    std::vector<int64_t> fitting = decisions;
    for (int64_t& decision : fitting) decision = std::min(decision, size_ - 1);
    return record::Candidate{spaces_[0].digest, std::move(fitting)};
  }
  GivenCandidate ReadTrace(const std::string& trace, double) const override {
    steps_.At("read");
    constexpr absl::string_view kForeign = "foreign ";  // with more spaces: of that length
    const bool is_foreign = absl::StartsWith(trace, kForeign);
    const size_t begin = trace.find_last_of(' ') + 1;
    absl::StatusOr<std::vector<int64_t>> decisions =
        ParseGiven(trace.substr(is_foreign ? begin : 0));
    if (!decisions.ok()) {
      return {.refusal = Refusal::kMalformed, .why = std::string(decisions.status().message())};
    }
    for (const int64_t decision : *decisions) {
      if (decision < 0 || decision >= size_)
        return {.refusal = Refusal::kIllegal, .why = "a decision is not legal"};
    }
    const std::string text = is_foreign ? absl::StrCat("a foreign space searched",
                                                       std::string(begin - kForeign.size(), ' '))
                                        : spaces_[0].text;
    return {.candidate = {DigestOf(text).ToHex(), *std::move(decisions)}, .space = text};
  }

 private:
  const int64_t size_;
  const uint64_t stream_;
  const Steps steps_;
  std::vector<SpaceInfo> spaces_;
  std::optional<record::Candidate> only_;
};

}  // namespace

absl::StatusOr<WorkloadInfo> FakeTaskEnvironment::Describe(const std::string& workload) const {
  HONE_ASSIGN_OR_RETURN(const Parsed parsed, Parse(workload));
  const std::string digest = workload_digest.empty() ? DigestOf(workload).ToHex() : workload_digest;
  return WorkloadInfo{workload, digest, parsed.name, 2000.0, fixed_flops, has_fma_peak};
}

absl::StatusOr<bool> FakeTaskEnvironment::CheckSpace(const std::string&,
                                                     const std::string& space) const {
  HONE_RETURN_IF_ERROR(ParseGiven(space).status());
  return true;
}

absl::StatusOr<std::unique_ptr<TaskSpaces>> FakeTaskEnvironment::Open(
    const std::string& workload, const std::string&, const std::string& space, double,
    StopCheck check, std::shared_ptr<const cost_model::CostModel>) const {
  HONE_ASSIGN_OR_RETURN(const Parsed parsed, Parse(workload));
  std::vector<int64_t> only;
  if (!space.empty()) {
    HONE_ASSIGN_OR_RETURN(only, ParseGiven(space));
  }
  const Steps steps(at_step_, parsed.name, std::move(check));
  steps.At("open");
  HONE_RETURN_IF_ERROR(steps.Check());
  return std::make_unique<FakeSpaces>(parsed, only, stream_, steps);
}

absl::StatusOr<std::unique_ptr<TaskSpaces>> FakeTaskEnvironment::OpenKept(
    const std::string& space, const std::string&) const {
  const std::vector<std::string> words = absl::StrSplit(space, ' ');  // "space of NAME searched"
  if (words.size() != 4 || words[0] != "space") {
    return absl::InvalidArgumentError("no space of ours");
  }
  return std::make_unique<FakeSpaces>(Parsed{.name = words[2]}, std::vector<int64_t>(), stream_,
                                      Steps(at_step_, words[2], nullptr));
}

double FakeTaskEnvironment::Distance(const std::string& a, const std::string& b) const {
  const absl::StatusOr<Parsed> left = Parse(a), right = Parse(b);
  if (!left.ok() || !right.ok() || left->name[0] != right->name[0]) return INFINITY;
  return std::abs(std::log2(static_cast<double>(left->size) / static_cast<double>(right->size)));
}

absl::StatusOr<std::string> FakeTaskEnvironment::Transplant(const std::string&,
                                                            const std::string&) const {
  return absl::InvalidArgumentError("fakes are not transplanted");
}

absl::StatusOr<std::string> FakeTaskEnvironment::TraceText(
    const std::string& space, const std::vector<int64_t>& decisions) const {
  return absl::StrCat(space, " [", absl::StrJoin(decisions, ", "), "]");
}

absl::StatusOr<FeatureTable> FakeTaskEnvironment::DescribeFeatures(
    const std::string& trace, const std::string& target, const std::string& feature_set) const {
  if (!feature_set.empty() && feature_set != "decisions") {
    return absl::InvalidArgumentError("there is: decisions");
  }
  return FeatureTable{
      .feature_set = "decisions",
      .target = "t",
      .columns = {"trace", "target"},
      .values = {static_cast<float>(trace.size()), static_cast<float>(target.size())}};
}

absl::StatusOr<std::unique_ptr<cost_model::CostModel>> FakeTaskEnvironment::CreateModel(
    const std::string& name, const cost_model::CostModelOptions&) const {
  if (name == "oracle") return absl::FailedPreconditionError("oracle: it needs a temple");
  if (name == kLearnedDraft) return std::make_unique<NearestModel>(kLearnedDraft, kLearnedDraft);
  if (name != "nearest") return absl::NotFoundError("there is: nearest");
  return std::make_unique<NearestModel>("nearest", "decisions");
}

double FakeLatency(const std::vector<int64_t>& decisions) {
  if (decisions.size() != 3) return 1000;
  double latency = 100;
  for (int d = 0; d < 3; ++d) latency += 10 * std::abs(decisions[d] - (d + 1));
  return latency;
}

}  // namespace hone::job
