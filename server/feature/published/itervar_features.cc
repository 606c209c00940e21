#include "server/feature/published/itervar_features.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/feature/nest.h"
#include "server/feature/published/loop_blocks.h"

namespace hone::feature {
namespace {

std::vector<std::string> MakeNames() {
  std::vector<std::string> names;
  for (int loop = 0; loop < kItervarLoops; ++loop) {
    for (const std::string& name : LoopColumnNames()) {
      names.push_back(absl::StrCat("loop", loop, ".", name));
    }
  }
  return names;
}

class ItervarFeatureSet final : public FeatureSet {
 public:
  absl::string_view name() const override { return "itervar"; }
  int Columns() const override { return kItervarLoops * kLoopColumns; }
  const std::vector<std::string>& ColumnNames() const override {
    static const auto* names = new std::vector<std::string>(MakeNames());
    return *names;
  }

  absl::Status Extract(const ir::Program& program, const target::Target&,
                       std::vector<float>& rows_out, int& row_count) const override {
    thread_local Nest nest;  // keeps its memory from candidate to candidate
    HONE_RETURN_IF_ERROR(AnalyzeBlocks(program, nest));
    const size_t begin = rows_out.size();
    LoopBlocks blocks(program, kItervarLoops, /*lead=*/0, rows_out);
    for (const Statement& statement : nest.statements()) blocks.Add(statement);
    blocks.Finish();
    rows_out.resize(begin + Columns(), 0.0f);
    row_count = 1;
    return absl::OkStatus();
  }
};

}  // namespace

const FeatureSet& ItervarFeatures() {
  static const auto* set = new ItervarFeatureSet;
  return *set;
}

}  // namespace hone::feature
