#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/research/feature/feature_sets.h"
#include "server/research/feature/loop_blocks.h"
#include "server/tuner/feature/nest.h"

namespace hone::feature {
namespace {

constexpr int kItervarLoops = 32;
constexpr int kTreeLoops = 256;
constexpr int kTreeColumns = 1 + kLoopColumns;

void DescribeLoops(const Nest& nest, const target::Target&, std::vector<float>& rows_out) {
  const size_t begin = rows_out.size();
  LoopBlocks blocks(nest, kItervarLoops, /*lead=*/0, rows_out);
  rows_out.resize(begin + kItervarLoops * kLoopColumns, 0.0f);
}

void DescribeTree(const Nest& nest, const target::Target&, std::vector<float>& rows_out) {
  const size_t begin = rows_out.size();
  const LoopBlocks blocks(nest, kTreeLoops, /*lead=*/1, rows_out);
  const int rows = std::max(blocks.count(), 1);
  rows_out.resize(begin + static_cast<size_t>(rows) * kTreeColumns, 0.0f);
  for (int row = 0; row < rows; ++row) {
    rows_out[begin + row * kTreeColumns + kTreeParentColumn] =
        blocks.count() == 0 ? -1.0f : static_cast<float>(blocks.parent(row));
  }
}

}  // namespace

std::unique_ptr<FeatureSet> MakeItervarFeatures() {
  std::vector<std::string> names;
  for (int loop = 0; loop < kItervarLoops; ++loop) {
    for (const std::string& name : LoopColumnNames())
      names.push_back(absl::StrCat("loop", loop, ".", name));
  }
  return std::make_unique<FeatureSet>("itervar", std::move(names), DescribeLoops);
}

std::unique_ptr<FeatureSet> MakeTreeFeatures() {
  std::vector<std::string> names = LoopColumnNames();
  names.insert(names.begin() + kTreeParentColumn, "parent");
  return std::make_unique<FeatureSet>("tree", std::move(names), DescribeTree);
}

}  // namespace hone::feature
