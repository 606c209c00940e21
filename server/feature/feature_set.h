#ifndef HONE_SERVER_FEATURE_FEATURE_SET_H_
#define HONE_SERVER_FEATURE_FEATURE_SET_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
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

class Nest;

// Numbers that describe a scheduled program to a cost model, in rows of equal length. Stateless and
// thread-safe; one instance of each lives as long as the process.
class FeatureSet {
 public:
  // Appends the rows of a program with at least one statement.
  using Describe = std::function<void(const Nest& nest, const target::Target& target,
                                      std::vector<float>& rows_out)>;
  // `columns`: their names, unique.
  FeatureSet(std::string name, std::vector<std::string> columns, Describe describe,
             bool row_per_statement = false)
      : name_(std::move(name)),
        columns_(std::move(columns)),
        describe_(std::move(describe)),
        row_per_statement_(row_per_statement) {}
  virtual ~FeatureSet() = default;

  // The registered name, as CostModel::feature_set() gives it.
  absl::string_view name() const { return name_; }
  int Columns() const { return static_cast<int>(columns_.size()); }
  const std::vector<std::string>& ColumnNames() const { return columns_; }

  // Whether a program has one row per statement, in the order of Nest::statements().
  bool RowPerStatement() const { return row_per_statement_; }

  // Appends the program's rows to `rows_out` and sets `row_count` to their number, at least 1.
  // Every value is finite, and equal programs give equal rows whatever their variables are called.
  // InvalidArgument: the program has no block outside the prepack kernel, or a nest deeper than
  // kMaxLoops; nothing is appended then.
  virtual absl::Status Extract(const ir::Program& program, const target::Target& target,
                               std::vector<float>& rows_out, int& row_count) const;

  // The same of a candidate: `program` is what the design space makes of the decisions. Differs
  // from Extract only for sets that describe decisions; FailedPrecondition from Extract says that a
  // set needs this call.
  virtual absl::Status ExtractCandidate(const ir::Program& program, const Chosen& chosen,
                                        const target::Target& target, std::vector<float>& rows_out,
                                        int& row_count) const;
  // How many decisions a candidate may have; a limit only of sets that describe them.
  virtual int MaxDecisions() const { return std::numeric_limits<int>::max(); }

 private:
  const std::string name_;
  const std::vector<std::string> columns_;
  const Describe describe_;
  const bool row_per_statement_;
};

// The feature set of a registered name. NotFound: there is none; the message lists the names.
absl::StatusOr<const FeatureSet*> FindFeatureSet(absl::string_view name);
std::vector<std::string> FeatureSetNames();

}  // namespace hone::feature

#endif  // HONE_SERVER_FEATURE_FEATURE_SET_H_
