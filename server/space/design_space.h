#ifndef HONE_SERVER_SPACE_DESIGN_SPACE_H_
#define HONE_SERVER_SPACE_DESIGN_SPACE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/rng.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"
#include "common/schedule/replay.h"
#include "common/schedule/trace.h"

namespace hone::space {

// What decisions must fulfil beyond being legal at their sites, e.g. that a tile fits into a cache.
// A matter of drawing alone: it is no part of the text, and Replay accepts decisions that break it.
struct Constraint {
  std::string name;
  int decisions =
      0;  // how many leading decisions it reads; it is checked as soon as these are drawn
  std::function<bool(absl::Span<const int64_t>)> holds;
};

class Chooser;

// A trace with open decisions on a workload. Made by the rules (generate.h) or from text; owned by
// the task, which hands it to strategies. Immutable: every method may be called by many threads at
// once.
//
// Decisions are one vector of numbers. A legal vector has a legal value at every site and meets the
// constraints; Replay of one may still be refused by a primitive, which is rare (at most 2 % over
// the spaces of the rules, held by a test).
class DesignSpace {
 public:
  // InvalidArgument: no decisions were found for which the trace replays; the message is that of
  // the last try.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> Create(
      std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
      std::vector<Constraint> constraints = {});
  // Reads a trace file: a design space kept with old records, or a schedule written by hand. The
  // text stays as it is, so that its digest does. Decisions given in the text go to `decided`
  // (empty when they are open), and the space is then the canonical text without them.
  // InvalidArgument: also everything that ParseTraceFile refuses.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> FromText(
      absl::string_view text, std::string name = "given", std::vector<int64_t>* decided = nullptr);
  // The space of one candidate: only these decisions are legal, whatever else the trace would take.
  // Text and digest are those of the open trace. InvalidArgument: the trace does not replay with
  // them; the message prints the program.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> OfOneCandidate(
      std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
      std::vector<int64_t> decisions);

  const std::string& name() const { return name_; }
  // The trace file with its decisions open. What builders get and records refer to.
  const std::string& text() const { return text_; }
  // DigestOf(text()) in hex.
  const std::string& digest() const { return digest_; }
  const std::shared_ptr<const ir::Workload>& workload() const { return workload_; }
  const schedule::Trace& trace() const { return trace_; }
  // Numbers in a decision vector.
  int decision_count() const { return trace_.decisions; }
  // The only legal vector, where there is no choice: of OfOneCandidate, or no decisions at all.
  std::optional<std::vector<int64_t>> only() const {
    return trace_.decisions == 0 ? std::vector<int64_t>{} : only_;
  }

  // A legal vector at random: a function of the generator's state alone. ResourceExhausted: none
  // was found in a bounded number of tries.
  absl::StatusOr<std::vector<int64_t>> Sample(Rng& rng) const;
  // Another legal vector near the given one: one site gets another value (a tile has a factor moved
  // between two levels, a choice another row), later sites keep theirs where that is still legal.
  // ResourceExhausted: none was found; a space without choice has none. InvalidArgument: the vector
  // has another length.
  absl::StatusOr<std::vector<int64_t>> Mutate(absl::Span<const int64_t> decisions, Rng& rng) const;
  // A legal vector that takes every site from one of the parents, repaired where that is not legal.
  // May equal a parent. Errors as of Mutate.
  absl::StatusOr<std::vector<int64_t>> Crossover(absl::Span<const int64_t> a,
                                                 absl::Span<const int64_t> b, Rng& rng) const;

  // The legal vector nearest to decisions of another space of the same structure
  // (trace_structure.h), e.g. of the same operator with other shapes: tiles are factorized again,
  // by distance of the logarithms of their parts, and the constraints hold. A function of the
  // arguments alone. ResourceExhausted: nothing near meets the constraints. InvalidArgument:
  // another length.
  absl::StatusOr<std::vector<int64_t>> Nearest(absl::Span<const int64_t> wanted) const;

  // Errors as of schedule::Replay.
  absl::StatusOr<ir::Program> Replay(absl::Span<const int64_t> decisions) const;
  // The sites with the extents that these decisions give. InvalidArgument: the vector has another
  // length, or a value is not legal. Errors of Replay too, in spaces whose extents cannot be told
  // from the decisions alone.
  absl::StatusOr<std::vector<schedule::Site>> Sites(absl::Span<const int64_t> decisions) const;
  // The trace file with the decisions written in. InvalidArgument: the vector has another length.
  absl::StatusOr<std::string> ConcreteTraceText(absl::Span<const int64_t> decisions) const;
  // Whether a vector of the right length is legal at every site and meets every constraint.
  bool IsLegal(absl::Span<const int64_t> decisions) const;
  // The length of the shortest beginning of a vector of the right length that breaks a constraint,
  // as every other vector with this beginning does; 0 where the vector breaks none.
  int BrokenPrefix(absl::Span<const int64_t> decisions) const;

 private:
  DesignSpace(std::string name, std::string text, std::shared_ptr<const ir::Workload> workload,
              schedule::Trace trace);
  absl::Status Probe();
  absl::Status DoesNotReplay(const absl::Status& why) const;
  absl::Status CheckLength(absl::Span<const int64_t> decisions) const;
  // Visits the sites in order; their extents come from derivations, or from a replay in which
  // `decider` takes part.
  absl::StatusOr<std::vector<int64_t>> Walk(schedule::Decider& decider) const;
  // Walks with a chooser until the constraints hold and `accept` does.
  absl::StatusOr<std::vector<int64_t>> Draw(
      Chooser& chooser, Rng& rng,
      const std::function<bool(absl::Span<const int64_t>)>& accept) const;

  std::string name_;
  std::string text_;
  std::string digest_;
  std::shared_ptr<const ir::Workload> workload_;
  schedule::Trace trace_;
  std::vector<Constraint> constraints_;
  std::optional<std::vector<int64_t>> only_;
  // The sites as one replay met them, and how their extents follow from decisions. When `derived_`
  // is false an extent depends on decisions in a way that derivations do not tell (a factor was
  // clamped), and only a replay knows.
  std::vector<schedule::Site> sites_;
  ir::ExtentTable extents_;
  bool derived_ = false;
};

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_DESIGN_SPACE_H_
