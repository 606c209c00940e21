#include "server/tuner/cost_model/flat_forest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cost_model {
namespace {

// Rows that descend a tree together, which overlaps their memory accesses.
constexpr int kLanes = 8;
// Rows whose features stay in the first-level cache while all trees are evaluated.
constexpr int kBlockRows = 32;

constexpr float kNeverReached = std::numeric_limits<float>::infinity();
// Of files from elsewhere: what no training of Hone makes.
constexpr uint32_t kMostTrees = 10'000;
constexpr int32_t kMostDepth = 64;
constexpr float kMostLeaf = 1e4;

}  // namespace

absl::StatusOr<FlatForest> FlatForest::Create(absl::Span<const Tree> trees, int columns) {
  if (columns < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a forest of ", columns, " columns"));
  }
  FlatForest forest;
  forest.columns_ = columns;
  for (size_t i = 0; i < trees.size(); ++i) {
    if (absl::Status status = forest.Add(trees[i]); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("tree ", i, ": ", status.message()));
    }
  }
  return forest;
}

absl::Status FlatForest::Add(const Tree& tree) {
  const size_t count = tree.left.size();
  if (count == 0 || tree.right.size() != count || tree.feature.size() != count ||
      tree.value.size() != count) {
    return absl::InvalidArgumentError("its arrays are empty or of different sizes");
  }
  const int32_t root = static_cast<int32_t>(nodes_.size());
  // order[i] is the original index of the i-th node in the new layout.
  std::vector<int32_t> order = {0};
  std::vector<bool> seen(count, false);
  seen[0] = true;
  int32_t depth = 0;
  for (size_t level_begin = 0, level_end = 1; level_begin < level_end; ++depth) {
    if (depth > kMostDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is deeper than ", kMostDepth, " decisions"));
    }
    for (size_t i = level_begin; i < level_end; ++i) {
      const int32_t node = order[i];
      const int32_t self = root + static_cast<int32_t>(i);
      if (!std::isfinite(tree.value[node])) {
        return absl::InvalidArgumentError(
            absl::StrCat("the value of node ", node, " is not finite"));
      }
      if (tree.left[node] == -1) {
        nodes_.push_back({.threshold = kNeverReached, .feature = 0, .left = self});
        if (std::abs(tree.value[node]) > kMostLeaf) {
          return absl::InvalidArgumentError(absl::StrCat(
              "the value of leaf ", node, ", ", tree.value[node], ", is larger than ", kMostLeaf));
        }
        leaf_value_.push_back(tree.value[node]);
        continue;
      }
      if (tree.feature[node] < 0 || tree.feature[node] >= columns_) {
        return absl::InvalidArgumentError(
            absl::StrCat("node ", node, " reads feature ", tree.feature[node], " of ", columns_));
      }
      for (const int32_t child : {tree.left[node], tree.right[node]}) {
        if (child < 0 || static_cast<size_t>(child) >= count || seen[child]) {
          return absl::InvalidArgumentError(absl::StrCat("node ", node, " has the child ", child,
                                                         ", which is not one of the ", count,
                                                         " nodes or already has a parent"));
        }
        seen[child] = true;
        order.push_back(child);
      }
      nodes_.push_back({.threshold = tree.value[node],
                        .feature = tree.feature[node],
                        .left = root + static_cast<int32_t>(order.size()) - 2});
      leaf_value_.push_back(0);
    }
    level_begin = level_end;
    level_end = order.size();
  }
  trees_.push_back({.root = root, .depth = depth - 1});
  return absl::OkStatus();
}

void FlatForest::Predict(absl::Span<const float> rows, absl::Span<float> out) const {
  absl::c_fill(out, 0.0f);
  const Node* const nodes = nodes_.data();
  const int count = static_cast<int>(out.size());
  for (int block = 0; block < count; block += kBlockRows) {
    const int block_end = std::min(block + kBlockRows, count);
    for (const TreeRange& tree : trees_) {
      for (int group = block; group < block_end; group += kLanes) {
        const float* lane_row[kLanes];
        int32_t at[kLanes];
        for (int lane = 0; lane < kLanes; ++lane) {
          // Lanes past the end repeat the last row.
          const size_t row = static_cast<size_t>(std::min(group + lane, block_end - 1));
          lane_row[lane] = rows.data() + row * columns_;
          at[lane] = tree.root;
        }
        for (int32_t step = 0; step < tree.depth; ++step) {
          for (int lane = 0; lane < kLanes; ++lane) {
            const Node& node = nodes[at[lane]];
            at[lane] = node.left + !(lane_row[lane][node.feature] < node.threshold);
          }
        }
        const int lanes = std::min(kLanes, block_end - group);
        for (int lane = 0; lane < lanes; ++lane) out[group + lane] += leaf_value_[at[lane]];
      }
    }
  }
}

void FlatForest::Serialize(ByteWriter& writer) const {
  writer.Add(columns_, static_cast<uint32_t>(trees_.size()));
  for (size_t i = 0; i < trees_.size(); ++i) {
    const size_t begin = trees_[i].root;
    const size_t end = i + 1 < trees_.size() ? trees_[i + 1].root : nodes_.size();
    writer.Add<uint32_t>(end - begin);
    for (size_t node = begin; node < end; ++node) {
      const bool leaf = nodes_[node].left == static_cast<int32_t>(node);
      writer.Add(leaf ? ~0u : static_cast<uint32_t>(nodes_[node].left - begin),
                 nodes_[node].feature, leaf ? leaf_value_[node] : nodes_[node].threshold);
    }
  }
}

absl::StatusOr<FlatForest> FlatForest::Parse(ByteReader& reader) {
  uint32_t columns = 0, count = 0;
  HONE_RETURN_IF_ERROR(reader.Read(columns, count));
  if (columns > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("a forest of ", columns, " columns"));
  }
  if (count > kMostTrees) {
    return absl::InvalidArgumentError(
        absl::StrCat("a forest of ", count, " trees; at most ", kMostTrees, " are allowed"));
  }
  std::vector<Tree> trees;
  for (uint32_t i = 0; i < count; ++i) {
    HONE_ASSIGN_OR_RETURN(const uint32_t nodes, reader.Read<uint32_t>());
    Tree& tree = trees.emplace_back();
    for (uint32_t node = 0; node < nodes; ++node) {  // a wrong count must not allocate much memory
      uint32_t left = 0;
      HONE_RETURN_IF_ERROR(
          reader.Read(left, tree.feature.emplace_back(), tree.value.emplace_back()));
      tree.left.push_back(static_cast<int32_t>(left));
      tree.right.push_back(static_cast<int32_t>(left + 1));
    }
  }
  return Create(trees, static_cast<int>(columns));
}

}  // namespace hone::cost_model
