#ifndef HONE_SERVER_FEATURE_FEATURE_SET_H_
#define HONE_SERVER_FEATURE_FEATURE_SET_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/target/target.h"

namespace hone::feature {

// What a candidate is beside its program.
struct Chosen {
  int space = 0;  // place of its design space among those of the task; -1: none of them
  absl::Span<const int64_t> decisions;
};

// Numbers that describe a scheduled program to a cost model, in rows of equal length. Stateless and
// thread-safe; one instance of each lives as long as the process.
class FeatureSet {
 public:
  virtual ~FeatureSet() = default;

  // The registered name, as CostModel::feature_set() gives it.
  virtual absl::string_view name() const = 0;
  virtual int Columns() const = 0;
  // One name per column; unique.
  virtual const std::vector<std::string>& ColumnNames() const = 0;

  // Whether a program has one row per statement, in the order of Nest::statements().
  virtual bool RowPerStatement() const { return false; }

  // Appends the program's rows to `rows_out` and sets `row_count` to their number, at least 1.
  // Every value is finite, and equal programs give equal rows whatever their variables are called.
  // InvalidArgument: the program has no block outside the prepack kernel, or a nest deeper than
  // kMaxLoops; nothing is appended then.
  virtual absl::Status Extract(const ir::Program& program, const target::Target& target,
                               std::vector<float>& rows_out, int& row_count) const = 0;

  // The same of a candidate: `program` is what the design space makes of the decisions. Differs
  // from Extract only for sets that describe decisions; FailedPrecondition from Extract says that a
  // set needs this call.
  virtual absl::Status ExtractCandidate(const ir::Program& program, const Chosen& chosen,
                                        const target::Target& target, std::vector<float>& rows_out,
                                        int& row_count) const;
  // How many decisions a candidate may have; a limit only of sets that describe them.
  virtual int MaxDecisions() const { return std::numeric_limits<int>::max(); }
};

// The feature set of a registered name. NotFound: there is none; the message lists the names.
absl::StatusOr<const FeatureSet*> FindFeatureSet(absl::string_view name);
std::vector<std::string> FeatureSetNames();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_FEATURE_SET_H_
