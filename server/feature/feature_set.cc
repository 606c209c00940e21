#include "server/feature/feature_set.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/feature/analytic_features.h"
#include "server/feature/published/curve_features.h"
#include "server/feature/published/itervar_features.h"
#include "server/feature/published/knob_features.h"
#include "server/feature/published/tree_features.h"
#include "server/feature/statement_features.h"

namespace hone::feature {
namespace {

// One line per feature set.
const FeatureSet* const* Table(size_t& count) {
  static const FeatureSet* const table[] = {
      &StatementFeatures(StatementVariant::kCorrected),
      &StatementFeatures(StatementVariant::kOriginal),
      &KnobFeatures(),
      &ItervarFeatures(),
      &CurveFeatures(),
      &CurveOneFeatures(),
      &CurveFixFeatures(),
      &CurveFixReuseFeatures(),
      &AnalyticFeatures(),
      &TreeFeatures(),
  };
  count = std::size(table);
  return table;
}

}  // namespace

absl::Status FeatureSet::ExtractCandidate(const ir::Program& program, const Chosen&,
                                          const target::Target& target,
                                          std::vector<float>& rows_out, int& row_count) const {
  return Extract(program, target, rows_out, row_count);
}

absl::StatusOr<const FeatureSet*> FindFeatureSet(absl::string_view name) {
  size_t count = 0;
  const FeatureSet* const* table = Table(count);
  for (size_t i = 0; i < count; ++i) {
    if (table[i]->name() == name) return table[i];
  }
  return absl::NotFoundError(absl::StrCat(
      "no feature set '", name, "'; there are: ", absl::StrJoin(FeatureSetNames(), ", ")));
}

std::vector<std::string> FeatureSetNames() {
  size_t count = 0;
  const FeatureSet* const* table = Table(count);
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.emplace_back(table[i]->name());
  return names;
}

}  // namespace hone::feature
