#include "server/tuner/feature/feature_set.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "server/tuner/feature/feature_sets.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

std::vector<std::unique_ptr<FeatureSet>>& FeatureSets() {
  static auto* const sets = [] {
    auto* made = new std::vector<std::unique_ptr<FeatureSet>>;
    made->push_back(MakeStatementFeatures(StatementVariant::kCorrected));
    made->push_back(MakeStatementFeatures(StatementVariant::kOriginal));
    made->push_back(MakeAnalyticFeatures());
    return made;
  }();
  return *sets;
}

}  // namespace

void RegisterFeatureSet(std::unique_ptr<FeatureSet> set) {
  FeatureSets().push_back(std::move(set));
}

absl::Status FeatureSet::Extract(const ir::Program& program, const target::Target& target,
                                 std::vector<float>& rows_out, int& row_count) const {
  thread_local Nest nest;  // static to reuse its memory
  HONE_RETURN_IF_ERROR(nest.Analyze(program));
  if (nest.statements().empty())
    return absl::InvalidArgumentError("the program has no block to describe");
  const size_t begin = rows_out.size();
  describe_(nest, target, rows_out);
  row_count = static_cast<int>((rows_out.size() - begin) / columns_.size());
  return absl::OkStatus();
}

absl::Status FeatureSet::ExtractCandidate(const ir::Program& program, const Chosen&,
                                          const target::Target& target,
                                          std::vector<float>& rows_out, int& row_count) const {
  return Extract(program, target, rows_out, row_count);
}

absl::StatusOr<const FeatureSet*> FindFeatureSet(absl::string_view name) {
  for (const auto& set : FeatureSets()) {
    if (set->name() == name) return set.get();
  }
  return absl::NotFoundError(absl::StrCat(
      "no feature set '", name, "'; there are: ", absl::StrJoin(FeatureSetNames(), ", ")));
}

std::vector<std::string> FeatureSetNames() {
  std::vector<std::string> names;
  for (const auto& set : FeatureSets()) names.emplace_back(set->name());
  return names;
}

}  // namespace hone::feature
