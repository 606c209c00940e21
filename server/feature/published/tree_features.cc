#include "server/feature/published/tree_features.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "server/feature/nest.h"
#include "server/feature/published/loop_blocks.h"

namespace hone::feature {
namespace {

constexpr int kColumns = 1 + kLoopColumns;

class TreeFeatureSet final : public FeatureSet {
 public:
  absl::string_view name() const override { return "tree"; }
  int Columns() const override { return kColumns; }
  const std::vector<std::string>& ColumnNames() const override {
    static const auto* names = [] {
      auto* made = new std::vector<std::string>{"parent"};
      made->insert(made->end(), LoopColumnNames().begin(), LoopColumnNames().end());
      return made;
    }();
    return *names;
  }

  absl::Status Extract(const ir::Program& program, const target::Target&,
                       std::vector<float>& rows_out, int& row_count) const override {
    thread_local Nest nest;  // keeps its memory from candidate to candidate
    HONE_RETURN_IF_ERROR(AnalyzeBlocks(program, nest));
    const size_t begin = rows_out.size();
    LoopBlocks blocks(program, kTreeLoops, /*lead=*/1, rows_out);
    for (const Statement& statement : nest.statements()) blocks.Add(statement);
    blocks.Finish();
    row_count = std::max(blocks.count(), 1);
    rows_out.resize(begin + static_cast<size_t>(row_count) * kColumns, 0.0f);
    for (int row = 0; row < row_count; ++row) {
      rows_out[begin + row * kColumns + kTreeParentColumn] =
          blocks.count() == 0 ? -1.0f : static_cast<float>(blocks.parent(row));
    }
    return absl::OkStatus();
  }
};

}  // namespace

const FeatureSet& TreeFeatures() {
  static const auto* set = new TreeFeatureSet;
  return *set;
}

}  // namespace hone::feature
