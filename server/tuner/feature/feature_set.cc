#include "server/tuner/feature/feature_set.h"

#include <algorithm>
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
    made->push_back(MakeDraftFeatures());
    made->push_back(MakeResidualFeatures());
    return made;
  }();
  return *sets;
}

// Returns the columns of two sets with a row per statement side by side. A set with fewer rows has
// zeros in the last ones.
std::unique_ptr<FeatureSet> Join(std::string name, std::shared_ptr<const FeatureSet> a,
                                 std::shared_ptr<const FeatureSet> b) {
  std::vector<std::string> columns = a->ColumnNames();
  columns.insert(columns.end(), b->ColumnNames().begin(), b->ColumnNames().end());
  return std::make_unique<FeatureSet>(
      std::move(name), std::move(columns),
      [a, b](const Nest& nest, const target::Target& target, std::vector<float>& rows_out) {
        thread_local std::vector<float> of_a, of_b;
        of_a.clear();
        of_b.clear();
        a->DescribeNest(nest, target, of_a);
        b->DescribeNest(nest, target, of_b);
        const size_t rows = std::max(of_a.size() / a->Columns(), of_b.size() / b->Columns());
        of_a.resize(rows * a->Columns());
        of_b.resize(rows * b->Columns());
        for (size_t row = 0; row < rows; ++row) {
          const auto append = [&](const std::vector<float>& from, int columns) {
            const auto begin = from.begin() + static_cast<ptrdiff_t>(row) * columns;
            rows_out.insert(rows_out.end(), begin, begin + columns);
          };
          append(of_a, a->Columns());
          append(of_b, b->Columns());
        }
      });
}

}  // namespace

std::unique_ptr<FeatureSet> MakeResidualFeatures() {
  return Join("residual", MakeStatementFeatures(StatementVariant::kCorrected), MakeDraftFeatures());
}

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
