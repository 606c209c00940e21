#ifndef HONE_SERVER_SEARCH_STAGE_GROUPS_H_
#define HONE_SERVER_SEARCH_STAGE_GROUPS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "server/space/design_space.h"

namespace hone::search {

// Which decisions of a design space shape which of its program's statements: what Ansor calls the
// nodes of the computation, whose rewriting steps can be taken from one parent or the other.
//
// A decision belongs to the stages whose loops and blocks the instructions that read it transform.
// Stages that one decision shapes are one group, and so are a stage and what its instructions made
// of it (copies of operands, partial results). A stage without decisions belongs to the stage that
// it is computed at. A packed matrix product is one group; of a softmax each reduction is one.
// Immutable.
class StageGroups {
 public:
  // A function of the space's text; one replay per block that instructions make, where there is
  // more than one group.
  static StageGroups Of(const space::DesignSpace& space);

  // Groups that have decisions, numbered by their first one.
  int count() const { return count_; }
  // The group of every number of a decision vector; −1: it shapes no stage that is known.
  const std::vector<int>& of_decisions() const { return of_decisions_; }
  // The group of every statement of one of the space's programs, in the order of
  // feature::Nest::statements(); −1: no decision shapes it.
  std::vector<int> OfStatements(const ir::Program& program) const;

 private:
  int count_ = 0;
  std::vector<int> of_decisions_;
  absl::flat_hash_map<std::string, int> of_blocks_;  // by name
};

// The decisions of two parents of one space, each group's from the parent with the greater score
// there. Decisions of no group, and groups of equal score, are those of `a`. The result may be
// illegal where one group's values depend on another's (see Fit). REQUIRES a score per group.
std::vector<int64_t> MergeStages(const StageGroups& groups, absl::Span<const int64_t> a,
                                 absl::Span<const double> scores_a, absl::Span<const int64_t> b,
                                 absl::Span<const double> scores_b);

}  // namespace hone::search

#endif  // HONE_SERVER_SEARCH_STAGE_GROUPS_H_
