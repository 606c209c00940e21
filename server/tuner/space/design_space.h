#ifndef HONE_SERVER_TUNER_SPACE_DESIGN_SPACE_H_
#define HONE_SERVER_TUNER_SPACE_DESIGN_SPACE_H_

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

// A condition on decisions beyond legality at each site, e.g. that a tile fits into a cache. It
// only affects sampling: it is not part of the text, and Replay accepts decisions that violate it.
struct Constraint {
  std::string name;
  int decisions = 0;  // number of leading decisions it reads; checked as soon as these are drawn
  std::function<bool(absl::Span<const int64_t>)> holds;
};

// How a new design space is tried out.
struct Probing {
  // Whether seldom legal decisions are looked for and seldom differences in how extents are derived
  // are noticed, at the cost of more replays.
  bool thorough = true;
  // The replays that may still fail, times the stages of their workload. Is decreased, and once it
  // is used up, a space only gets a few tries. Null: no limit.
  int64_t* failures = nullptr;
};

class Chooser;

// A trace with open decisions on a workload. Made by the rules (generate.h) or parsed from text;
// owned by the task, which passes it to strategies. Immutable and thread-safe.
//
// Decisions are one vector of numbers. A legal vector has a legal value at every site and meets the
// constraints. A primitive may still refuse to replay a legal vector, which is rare (at most 2 %
// over the spaces of the rules; a test checks this).
class DesignSpace {
 public:
  // InvalidArgument: found no decisions for which the trace replays; the message is that of the
  // last try.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> Create(
      std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
      std::vector<Constraint> constraints = {}, const Probing& probing = {});
  // Reads a trace file: a stored design space or a handwritten schedule. Keeps the text unchanged,
  // so its digest does not change. If the text contains decisions, they are returned in `decided`
  // (empty if they are open), and the space is the canonical text without them. InvalidArgument:
  // also all errors of ParseTraceFile.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> FromText(
      absl::string_view text, std::string name = "given", std::vector<int64_t>* decided = nullptr);
  // Makes a space of one candidate: only these decisions are legal. Text and digest are those of
  // the open trace. InvalidArgument: the trace does not replay with these decisions; the message
  // prints the program.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> OfOneCandidate(
      std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
      std::vector<int64_t> decisions);

  // Makes a space of a workload whose parts are scheduled one after the other: `trace` consists of
  // the traces of `parts`, up to the names of tensors, and a vector of their vectors. Draws,
  // neighbours and legality are those of the parts, so their cost does not grow with the length of
  // the trace. `suggested`: a legal vector that replays.
  static absl::StatusOr<std::unique_ptr<DesignSpace>> OfParts(
      std::string name, std::shared_ptr<const ir::Workload> workload, schedule::Trace trace,
      std::vector<std::shared_ptr<const DesignSpace>> parts, std::vector<int64_t> suggested);

  const std::string& name() const { return name_; }
  // The trace file with open decisions. Builders receive it, and records refer to it.
  const std::string& text() const { return text_; }
  // DigestOf(text()) in hex.
  const std::string& digest() const { return digest_; }
  const std::shared_ptr<const ir::Workload>& workload() const { return workload_; }
  const schedule::Trace& trace() const { return trace_; }
  int decision_count() const { return trace_.decisions; }
  // The only legal vector if there is no choice (OfOneCandidate, or no decisions); otherwise
  // nullopt.
  std::optional<std::vector<int64_t>> only() const {
    return trace_.decisions == 0 ? std::vector<int64_t>{} : only_;
  }

  // A vector that is expected to be good, for the first proposal of a search; empty if the space
  // suggests none.
  const std::vector<int64_t>& suggested() const { return suggested_; }
  // The parts that are decided independently, in order; none if the space is not one of OfParts.
  struct Part {
    std::shared_ptr<const DesignSpace> space;
    int begin = 0;  // of its decisions
    int count() const { return space->decision_count(); }
  };
  const std::vector<Part>& parts() const { return parts_; }
  int part_count() const { return parts_.empty() ? 1 : static_cast<int>(parts_.size()); }

  // Returns a random legal vector, which depends only on the generator's state. A space of parts
  // keeps what it suggests for most of them. ResourceExhausted: none was found in a bounded number
  // of tries.
  absl::StatusOr<std::vector<int64_t>> Sample(Rng& rng) const;
  // Returns another legal vector near the given one. One site gets another value (in a tile, a
  // factor moves between two levels; in a choice, another row is taken); later sites keep their
  // values where these are still legal. ResourceExhausted: none was found; a space without choice
  // has none. InvalidArgument: wrong vector length.
  absl::StatusOr<std::vector<int64_t>> Mutate(absl::Span<const int64_t> decisions, Rng& rng) const;
  // Returns a legal vector that takes every site from one of the parents, repaired if necessary. It
  // may equal a parent. Errors are those of Mutate.
  absl::StatusOr<std::vector<int64_t>> Crossover(absl::Span<const int64_t> a,
                                                 absl::Span<const int64_t> b, Rng& rng) const;

  // Returns the legal vector nearest to decisions of another space with the same structure
  // (transfer.h), e.g. of the same operator with other shapes. Tiles are factorized again to
  // minimize the distance between the logarithms of their parts, and the constraints hold.
  // Deterministic. ResourceExhausted: no near vector meets the constraints. InvalidArgument: wrong
  // vector length.
  absl::StatusOr<std::vector<int64_t>> Nearest(absl::Span<const int64_t> wanted) const;

  // Errors are those of schedule::Replay.
  absl::StatusOr<ir::Program> Replay(absl::Span<const int64_t> decisions) const;
  // Replays several sorted vectors of the right length, as schedule::ReplayAll.
  void ReplayAll(absl::Span<const absl::Span<const int64_t>> sorted,
                 schedule::ReplayedTogether done) const {
    schedule::ReplayAll(workload_, trace_, sorted, done);
  }
  // Returns the sites with the extents for these decisions. InvalidArgument: wrong vector length,
  // or an illegal value. If extents cannot be derived from the decisions alone, also returns errors
  // of Replay.
  absl::StatusOr<std::vector<schedule::Site>> Sites(absl::Span<const int64_t> decisions) const;
  // Whether a vector of the right length is legal at every site and meets every constraint.
  bool IsLegal(absl::Span<const int64_t> decisions) const;
  // Returns the length of the shortest prefix of a vector of the right length that violates a
  // constraint (every other vector with this prefix then violates it too); 0 if the vector violates
  // none.
  int BrokenPrefix(absl::Span<const int64_t> decisions) const;

 private:
  DesignSpace(std::string name, std::string text, std::shared_ptr<const ir::Workload> workload,
              schedule::Trace trace);
  absl::Status Probe(const Probing& probing = {});
  absl::Status DoesNotReplay(const absl::Status& why) const;
  absl::Status CheckLength(absl::Span<const int64_t> decisions) const;
  // Visits the sites in order. Their extents come from derivations, or from a replay that uses
  // `decider`.
  absl::StatusOr<std::vector<int64_t>> Walk(schedule::Decider& decider) const;
  // The vectors of OfParts: those that `draw` returns for each part, with the part's span of
  // decisions.
  using DrawPart = std::function<absl::StatusOr<std::vector<int64_t>>(const Part&)>;
  absl::StatusOr<std::vector<int64_t>> DrawParts(const DrawPart& draw) const;
  absl::StatusOr<std::vector<int64_t>> SampleParts(Rng& rng) const;
  absl::StatusOr<std::vector<int64_t>> MutatePart(absl::Span<const int64_t> decisions,
                                                  Rng& rng) const;
  // Walks with a chooser until the constraints hold and `accept` returns true.
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
  std::vector<Part> parts_;  // of OfParts
  std::vector<int64_t> suggested_;
  // The sites of one replay, and how their extents follow from decisions. If `derived_` is false,
  // some extent cannot be derived from decisions (e.g. a factor was clamped) and needs a replay.
  std::vector<schedule::Site> sites_;
  ir::ExtentTable extents_;
  bool derived_ = false;
};

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_DESIGN_SPACE_H_
