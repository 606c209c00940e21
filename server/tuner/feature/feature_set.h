#ifndef HONE_SERVER_TUNER_FEATURE_FEATURE_SET_H_
#define HONE_SERVER_TUNER_FEATURE_FEATURE_SET_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/target/target.h"

namespace hone::schedule {
struct Trace;
}

namespace hone::feature {

// A candidate's design space and decisions.
struct Chosen {
  int space = 0;  // index of its design space in the task; -1: not one of them
  absl::Span<const int64_t> decisions;
  const schedule::Trace* trace = nullptr;  // of the design space; null: not known
};

class Nest;
class Description;

// Describes a scheduled program to a cost model by numbers, in rows of equal length. Stateless and
// thread-safe. There is one instance of each set, which is never destroyed.
class FeatureSet {
 public:
  // Appends the rows of a program with at least one statement.
  using Describe = std::function<void(const Nest& nest, const target::Target& target,
                                      std::vector<float>& rows_out)>;
  // `columns`: the names of the columns, which are unique.
  FeatureSet(std::string name, std::vector<std::string> columns, Describe describe)
      : name_(std::move(name)), columns_(std::move(columns)), describe_(std::move(describe)) {}
  // The columns of other sets side by side. A set with fewer rows has zeros in the last ones.
  FeatureSet(std::string name, std::vector<const FeatureSet*> joined);
  virtual ~FeatureSet() = default;

  // The registered name, as CostModel::feature_set() gives it.
  absl::string_view name() const { return name_; }
  int Columns() const { return static_cast<int>(columns_.size()); }
  const std::vector<std::string>& ColumnNames() const { return columns_; }

  // Appends the program's rows to `rows_out` and sets `row_count` to their number, at least 1.
  // Every value is finite. The rows do not depend on the names of variables. InvalidArgument: the
  // program has no block outside the prepack kernel, or a nest deeper than kMaxLoops; nothing is
  // appended.
  virtual absl::Status Extract(Description& program, std::vector<float>& rows_out,
                               int& row_count) const;
  // The same for a candidate; `program` is the result of its decisions. Differs from Extract only
  // for sets that describe decisions. For these, Extract returns FailedPrecondition.
  virtual absl::Status ExtractCandidate(Description& program, const Chosen&,
                                        std::vector<float>& rows_out, int& row_count) const {
    return Extract(program, rows_out, row_count);
  }
  // The same without a program, for sets that describe the schedule alone. FailedPrecondition: not
  // such a set.
  virtual absl::Status ExtractSchedule(const Chosen& chosen, std::vector<float>& rows_out,
                                       int& row_count) const;
  // The same for a program that no other set describes.
  absl::Status Extract(const ir::Program& program, const target::Target& target,
                       std::vector<float>& rows_out, int& row_count) const;
  absl::Status ExtractCandidate(const ir::Program& program, const Chosen& chosen,
                                const target::Target& target, std::vector<float>& rows_out,
                                int& row_count) const;
  // The maximum number of decisions of a candidate. Only sets that describe decisions have a limit.
  virtual int MaxDecisions() const { return std::numeric_limits<int>::max(); }

 private:
  const std::string name_;
  const std::vector<std::string> columns_;
  const Describe describe_;
  const std::vector<const FeatureSet*> joined_;
  friend class Description;
};

// A program on a target, as several sets describe it: what they have in common is computed once.
// Used by one thread, which keeps one to reuse its memory.
class Description {
 public:
  Description();
  ~Description();
  // Forgets the previous program. `program` and `target` must not change until the next Begin.
  void Begin(const ir::Program& program, const target::Target& target);
  // Returns the rows of a set. Errors are those of FeatureSet::Extract. Valid until the next call.
  absl::StatusOr<absl::Span<const float>> RowsOf(const FeatureSet& set);

 private:
  struct Rows {
    const FeatureSet* set = nullptr;
    std::vector<float> values;
  };
  absl::Status Analyze();
  // Returns the position of the set's rows. REQUIRES: the program is analyzed.
  size_t Find(const FeatureSet& set);

  const ir::Program* program_ = nullptr;
  const target::Target* target_ = nullptr;
  std::unique_ptr<Nest> nest_;
  bool analyzed_ = false;
  absl::Status status_;  // of the analysis
  std::vector<Rows> rows_;
  size_t count_ = 0;  // of the rows that belong to this program
};

// Finds a feature set by its registered name. NotFound: unknown name; the message lists the names.
absl::StatusOr<const FeatureSet*> FindFeatureSet(absl::string_view name);
std::vector<std::string> FeatureSetNames();

}  // namespace hone::feature

#endif  // HONE_SERVER_TUNER_FEATURE_FEATURE_SET_H_
