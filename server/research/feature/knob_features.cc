#include "absl/strings/str_cat.h"
#include "server/research/feature/feature_sets.h"

namespace hone::feature {
namespace {

std::vector<std::string> KnobNames() {
  std::vector<std::string> names = {"space", "decisions"};
  for (int i = 0; i < kKnobDecisions; ++i) names.push_back(absl::StrCat("decision", i));
  return names;
}

class KnobFeatureSet final : public FeatureSet {
 public:
  KnobFeatureSet() : FeatureSet("knob", KnobNames(), /*describe=*/nullptr) {}

  absl::Status Extract(Description&, std::vector<float>&, int&) const override {
    return absl::FailedPreconditionError(
        "feature set 'knob' describes a candidate's decisions, which a program does not contain");
  }

  int MaxDecisions() const override { return kKnobDecisions; }

  absl::Status ExtractCandidate(Description&, const Chosen& chosen, std::vector<float>& rows_out,
                                int& row_count) const override {
    const absl::Span<const int64_t> decisions = chosen.decisions;
    if (decisions.size() > kKnobDecisions) {
      return absl::InvalidArgumentError(absl::StrCat("feature set 'knob' takes ", kKnobDecisions,
                                                     " decisions, not ", decisions.size()));
    }
    const size_t begin = rows_out.size();
    rows_out.resize(begin + Columns(), 0.0f);
    rows_out[begin] = static_cast<float>(chosen.space);
    rows_out[begin + 1] = static_cast<float>(decisions.size());
    for (size_t i = 0; i < decisions.size(); ++i)
      rows_out[begin + 2 + i] = static_cast<float>(decisions[i]);
    row_count = 1;
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<FeatureSet> MakeKnobFeatures() { return std::make_unique<KnobFeatureSet>(); }

}  // namespace hone::feature
