#include "server/tuner/feature/feature_set.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
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
    const auto find = [&](absl::string_view name) {
      return absl::c_find_if(*made, [&](const auto& set) { return set->name() == name; })->get();
    };
    made->push_back(std::make_unique<FeatureSet>(
        "residual", std::vector<const FeatureSet*>{find("statement"), find("draft")}));
    return made;
  }();
  return *sets;
}

std::vector<std::string> ColumnsOf(const std::vector<const FeatureSet*>& sets) {
  std::vector<std::string> columns;
  for (const FeatureSet* set : sets)
    columns.insert(columns.end(), set->ColumnNames().begin(), set->ColumnNames().end());
  return columns;
}

// Returns this thread's description, begun with a program.
Description& DescriptionOf(const ir::Program& program, const target::Target& target) {
  thread_local Description description;  // static to reuse its memory
  description.Begin(program, target);
  return description;
}

}  // namespace

void RegisterFeatureSet(std::unique_ptr<FeatureSet> set) {
  FeatureSets().push_back(std::move(set));
}

FeatureSet::FeatureSet(std::string name, std::vector<const FeatureSet*> joined)
    : name_(std::move(name)), columns_(ColumnsOf(joined)), joined_(std::move(joined)) {}

absl::Status FeatureSet::Extract(Description& program, std::vector<float>& rows_out,
                                 int& row_count) const {
  HONE_ASSIGN_OR_RETURN(const absl::Span<const float> rows, program.RowsOf(*this));
  rows_out.insert(rows_out.end(), rows.begin(), rows.end());
  row_count = static_cast<int>(rows.size() / columns_.size());
  return absl::OkStatus();
}

absl::Status FeatureSet::Extract(const ir::Program& program, const target::Target& target,
                                 std::vector<float>& rows_out, int& row_count) const {
  return Extract(DescriptionOf(program, target), rows_out, row_count);
}

absl::Status FeatureSet::ExtractSchedule(const Chosen&, std::vector<float>&, int&) const {
  return absl::FailedPreconditionError(
      absl::StrCat("feature set '", name_, "' describes programs, not schedules"));
}

absl::Status FeatureSet::ExtractCandidate(const ir::Program& program, const Chosen& chosen,
                                          const target::Target& target,
                                          std::vector<float>& rows_out, int& row_count) const {
  return ExtractCandidate(DescriptionOf(program, target), chosen, rows_out, row_count);
}

Description::Description() : nest_(std::make_unique<Nest>()) {}
Description::~Description() = default;

void Description::Begin(const ir::Program& program, const target::Target& target) {
  program_ = &program;
  target_ = &target;
  analyzed_ = false;
  count_ = 0;
}

absl::Status Description::Analyze() {
  if (analyzed_) return status_;
  analyzed_ = true;
  status_ = nest_->Analyze(*program_);
  if (status_.ok() && nest_->statements().empty())
    status_ = absl::InvalidArgumentError("the program has no block to describe");
  return status_;
}

absl::StatusOr<absl::Span<const float>> Description::RowsOf(const FeatureSet& set) {
  HONE_RETURN_IF_ERROR(Analyze());
  return rows_[Find(set)].values;
}

size_t Description::Find(const FeatureSet& set) {
  for (size_t i = 0; i < count_; ++i) {
    if (rows_[i].set == &set) return i;
  }
  absl::InlinedVector<size_t, 2> parts;
  for (const FeatureSet* part : set.joined_) parts.push_back(Find(*part));
  if (count_ == rows_.size()) rows_.emplace_back();
  Rows& found = rows_[count_];
  found.set = &set;
  found.values.clear();
  if (parts.empty()) {
    set.describe_(*nest_, *target_, found.values);
    return count_++;
  }
  size_t count = 0;
  for (const size_t part : parts)
    count = std::max(count, rows_[part].values.size() / rows_[part].set->columns_.size());
  found.values.resize(count * set.columns_.size());
  size_t begin = 0;
  for (const size_t part : parts) {
    const std::vector<float>& from = rows_[part].values;
    const size_t columns = rows_[part].set->columns_.size();
    for (size_t row = 0; row < count; ++row) {
      float* const to = found.values.data() + row * set.columns_.size() + begin;
      if ((row + 1) * columns <= from.size())
        std::copy_n(from.data() + row * columns, columns, to);
      else
        std::fill_n(to, columns, 0.0f);
    }
    begin += columns;
  }
  return count_++;
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
