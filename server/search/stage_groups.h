#ifndef HONE_SERVER_SEARCH_STAGE_GROUPS_H_
#define HONE_SERVER_SEARCH_STAGE_GROUPS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "server/space/design_space.h"

namespace hone::search {

// Maps the decisions of a design space to the statements of its programs that they shape. A group
// corresponds to a node in Ansor's crossover, which takes the rewriting steps of a node from one
// parent or the other.
//
// A decision shapes a stage if an instruction that reads it transforms the stage's loops or blocks.
// Stages that are shaped by the same decision form one group. The blocks that a stage's
// instructions create (copies of operands, partial results) are in the stage's group. A stage
// without decisions is in the group of the stage where it is computed. A packed matrix product is
// one group; in a softmax each reduction is a group. Immutable.
class StageGroups {
 public:
  // Depends only on the text of the space. If there is more than one group, it replays parts of the
  // trace for every instruction that creates a block.
  static StageGroups Of(const space::DesignSpace& space);

  // The number of groups that have decisions. Groups are numbered in the order of their first
  // decisions.
  int count() const { return count_; }
  // The group of each number of a decision vector, or −1 if it shapes no known stage.
  const std::vector<int>& of_decisions() const { return of_decisions_; }
  // The group of each statement of a program of the space, in the order of
  // feature::Nest::statements(), or −1 if no decision shapes the statement.
  std::vector<int> OfStatements(const ir::Program& program) const;

 private:
  int count_ = 0;
  std::vector<int> of_decisions_;
  absl::flat_hash_map<std::string, int> of_blocks_;  // by name
};

// Combines the decisions of two parents of one space. Each group's decisions come from the parent
// with the higher score for the group. Decisions without a group, and groups with equal scores, are
// those of `a`. The result may be illegal if the values of one group depend on another group (see
// Fit). REQUIRES: each parent has one score per group.
std::vector<int64_t> MergeStages(const StageGroups& groups, absl::Span<const int64_t> a,
                                 absl::Span<const double> scores_a, absl::Span<const int64_t> b,
                                 absl::Span<const double> scores_b);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_STAGE_GROUPS_H_
