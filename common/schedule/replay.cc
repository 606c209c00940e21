#include "common/schedule/replay.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/ir/program.h"
#include "common/schedule/primitive.h"
#include "common/schedule/trace.h"

namespace hone::schedule {
namespace {

// The program after the instructions before a trace's first sampling. It is the same for every
// decision vector. Rewriting a workload takes ten times as long as scheduling it, and a search
// replays the same few traces repeatedly.
struct Snapshot {
  std::shared_ptr<const ir::Workload> workload;
  std::vector<Instruction> instructions;
  ir::Program program;
  std::vector<ir::NodeId> blocks, loops;  // indexed by register
};

// A task has about this many design spaces that begin with a rewrite.
constexpr size_t kKept = 8;

std::deque<Snapshot>& Kept() {
  thread_local std::deque<Snapshot> kept;
  return kept;
}

// The instructions before the first sampling of a trace that begins with a rewrite. Empty for other
// traces, because their first instructions are fast.
absl::Span<const Instruction> SharedStart(const Trace& trace) {
  const std::vector<Instruction>& all = trace.instructions;
  if (all.empty() || all[0].primitive->name != "rewrite") return {};
  const auto sampling = absl::c_find_if(
      all, [](const Instruction& instruction) { return instruction.primitive->samples; });
  return absl::MakeConstSpan(all).first(sampling - all.begin());
}

// The snapshot for exactly this workload object and these instructions if this thread still has it,
// else nullptr. Valid until the next KeepSnapshot.
const Snapshot* FindSnapshot(const ir::Workload* workload,
                             absl::Span<const Instruction> instructions) {
  for (const Snapshot& snapshot : Kept()) {
    if (snapshot.workload.get() == workload && instructions == snapshot.instructions)
      return &snapshot;
  }
  return nullptr;
}

void KeepSnapshot(Snapshot snapshot) {
  std::deque<Snapshot>& kept = Kept();
  if (kept.size() == kKept) kept.pop_front();
  kept.push_back(std::move(snapshot));
}

// "the argument 'factor'", for messages.
std::string NameOf(const Instruction& instruction, int operand) {
  const Argument* const argument = instruction.primitive->ArgumentOf(static_cast<size_t>(operand));
  return argument == nullptr ? absl::StrCat("argument ", operand + 1)
                             : absl::StrCat("the argument '", argument->name, "'");
}

// The value of a loop register whose decision is to leave the block where it is.
constexpr ir::NodeId kStay = -2;

std::vector<int64_t> Divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace

absl::StatusOr<ir::NodeId> Call::Block(int operand) const {
  if (operand >= operands() || instruction_->operands[operand].kind != Operand::Kind::kBlock) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(*instruction_, operand), " must be a block"));
  }
  const ir::NodeId node = state_.blocks[instruction_->operands[operand].reg];
  if (!program_->IsBlock(node))
    return absl::FailedPreconditionError(
        absl::StrCat("block b", instruction_->operands[operand].reg, " no longer exists"));
  return node;
}

absl::StatusOr<ir::NodeId> Call::Loop(int operand) const {
  if (operand >= operands() || instruction_->operands[operand].kind != Operand::Kind::kLoop) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(*instruction_, operand), " must be a loop"));
  }
  const ir::NodeId node = state_.loops[instruction_->operands[operand].reg];
  if (!program_->IsLoop(node))
    return absl::FailedPreconditionError(
        absl::StrCat("loop l", instruction_->operands[operand].reg, " no longer exists"));
  return node;
}

absl::StatusOr<ir::NodeId> Call::NodeOf(int operand) const {
  const Argument* argument = instruction_->primitive->ArgumentOf(operand);
  const bool any = argument != nullptr && argument->kind == Argument::Kind::kBlockOrLoop;
  const bool block =
      any ? operand < operands() && instruction_->operands[operand].kind == Operand::Kind::kBlock
          : argument != nullptr && argument->kind == Argument::Kind::kBlock;
  return block ? Block(operand) : Loop(operand);
}

bool Call::Stays(int operand) const {
  return operand < operands() && instruction_->operands[operand].kind == Operand::Kind::kLoop &&
         state_.loops[instruction_->operands[operand].reg] == kStay;
}

absl::StatusOr<ir::Extent> Call::Int(int operand) const {
  if (operand < operands()) {
    const Operand& value = instruction_->operands[operand];
    if (value.kind == Operand::Kind::kNumber) return ir::ExtentTable::Constant(value.number);
    if (value.kind == Operand::Kind::kInt) return state_.ints[value.reg];
  }
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(*instruction_, operand), " must be a number"));
}

absl::StatusOr<int> Call::IntBetween(int operand, int low, int high) const {
  HONE_ASSIGN_OR_RETURN(const ir::Extent number, Int(operand));
  if (number.value < low || number.value > high) {
    return absl::InvalidArgumentError(absl::StrCat(NameOf(*instruction_, operand), " is ",
                                                   number.value, ", and must be from ", low, " to ",
                                                   high));
  }
  return static_cast<int>(number.value);
}

absl::StatusOr<std::string> Call::Text(int operand) const {
  if (operand < operands() && instruction_->operands[operand].kind == Operand::Kind::kString) {
    return instruction_->operands[operand].text;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(NameOf(*instruction_, operand), " must be a string"));
}

std::vector<int64_t> Call::Numbers(absl::string_view attribute,
                                   std::vector<int64_t> fallback) const {
  for (const Attribute& a : instruction_->attributes) {
    if (a.name == attribute) return a.numbers;
  }
  return fallback;
}

int64_t Call::Number(absl::string_view attribute, int64_t fallback) const {
  for (const Attribute& a : instruction_->attributes) {
    if (a.name == attribute) return a.numbers.size() == 1 ? a.numbers[0] : fallback;
  }
  return fallback;
}

absl::Status Call::Return(absl::Span<const ir::NodeId> nodes) {
  if (nodes.size() != instruction_->results.size()) {
    return absl::InvalidArgumentError(absl::StrCat("gives ", nodes.size(), " results here, but ",
                                                   instruction_->results.size(), " are named"));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Operand& result = instruction_->results[i];
    (result.kind == Operand::Kind::kBlock ? state_.blocks : state_.loops)[result.reg] = nodes[i];
  }
  return absl::OkStatus();
}

absl::Status Call::Decide(Site site) {
  site.begin = instruction_->decision_begin;
  site.count = instruction_->decision_count;
  absl::Span<int64_t> values =
      absl::MakeSpan(state_.replayed.decisions).subspan(site.begin, site.count);
  HONE_RETURN_IF_ERROR(decider_->Decide(site, values));
  if (!site.IsLegal(values)) {
    return absl::InvalidArgumentError(absl::StrCat("decision [", absl::StrJoin(values, ", "),
                                                   "] is not legal here (extent ", site.extent,
                                                   ", max_inner ", site.max_inner, ")"));
  }
  state_.replayed.sites.push_back(std::move(site));
  return absl::OkStatus();
}

absl::Status Call::ReturnDecision(Site site) {
  HONE_RETURN_IF_ERROR(Decide(std::move(site)));
  const int begin = instruction_->decision_begin;
  for (int i = 0; i < instruction_->decision_count; ++i) {
    state_.ints[instruction_->results[i].reg] =
        program_->extents.Factor(state_.replayed.decisions[begin + i], begin + i);
  }
  return absl::OkStatus();
}

absl::Status Call::ReturnLocation(Site site, absl::Span<const ir::NodeId> loops) {
  HONE_RETURN_IF_ERROR(Decide(std::move(site)));
  const int64_t position = state_.replayed.decisions[instruction_->decision_begin];
  state_.loops[instruction_->results[0].reg] =
      position < 0 ? kStay : loops[static_cast<size_t>(position)];
  return absl::OkStatus();
}

PartialReplay StartReplay(std::shared_ptr<const ir::Workload> workload) {
  PartialReplay partial{.workload = std::move(workload)};
  partial.replayed.program = ir::Program::FromWorkload(partial.workload);
  return partial;
}

absl::Status ContinueReplay(const Trace& trace, Decider& decider, PartialReplay& partial,
                            size_t end) {
  Replayed& replayed = partial.replayed;
  replayed.decisions.resize(trace.decisions, 0);
  replayed.sites.reserve(trace.decisions);
  partial.ints.resize(trace.ints);
  partial.blocks.resize(trace.blocks, ir::kNoNode);
  partial.loops.resize(trace.loops, ir::kNoNode);
  const size_t shared = SharedStart(trace).size();
  Call call(decider, partial);
  end = std::min(end, trace.instructions.size());
  for (size_t& i = partial.instructions; i < end;) {
    call.instruction_ = &trace.instructions[i];
    const absl::Status status = call.instruction_->primitive->apply(call);
    ++i;
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("instruction ", i, " (", call.instruction_->primitive->name,
                                       "): ", status.message()));
    }
    if (i == shared) {
      KeepSnapshot({partial.workload,
                    {trace.instructions.begin(), trace.instructions.begin() + shared},
                    replayed.program,
                    partial.blocks,
                    partial.loops});
    }
  }
  return absl::OkStatus();
}

namespace {

// Starts the replay of a trace, after its shared start if this thread has it.
PartialReplay BeginReplay(std::shared_ptr<const ir::Workload> workload, const Trace& trace) {
  const absl::Span<const Instruction> start = SharedStart(trace);
  const Snapshot* snapshot = start.empty() ? nullptr : FindSnapshot(workload.get(), start);
  if (snapshot == nullptr) return StartReplay(std::move(workload));
  PartialReplay partial{.workload = std::move(workload),
                        .blocks = snapshot->blocks,
                        .loops = snapshot->loops,
                        .instructions = start.size()};
  partial.replayed.program = snapshot->program;
  return partial;
}

// The work of ReplayAll. Keeps the partial replays, so that copies reuse their memory.
class GroupReplay {
 public:
  GroupReplay(const Trace& trace, absl::Span<const absl::Span<const int64_t>> sorted,
              ReplayedTogether done)
      : trace_(trace), sorted_(sorted), done_(done) {}

  void Run(PartialReplay start) {
    if (sorted_.empty()) return;
    states_.push_back(std::move(start));
    Continue(0, 0, sorted_.size());
  }

 private:
  // Continues the replays of [begin, end), which are all in the state at `depth`.
  void Continue(size_t depth, size_t begin, size_t end) {
    const std::vector<Instruction>& all = trace_.instructions;
    const absl::Span<const int64_t> first = sorted_[begin], last = sorted_[end - 1];
    const auto differs = [&](const Instruction& instruction) {
      return ValuesOf(instruction, first) != ValuesOf(instruction, last);
    };
    PartialReplay& state = states_[depth];
    const auto fork =
        std::find_if(all.begin() + static_cast<ptrdiff_t>(state.instructions), all.end(), differs);
    GivenDecider decider(first);
    const absl::Status status = ContinueReplay(trace_, decider, state, fork - all.begin());
    if (!status.ok() || fork == all.end()) {
      for (; begin < end; ++begin) done_(begin, status, state.replayed.program);
      return;
    }
    while (begin < end) {
      size_t next = begin + 1;
      while (next < end && ValuesOf(*fork, sorted_[next]) == ValuesOf(*fork, sorted_[begin]))
        ++next;
      if (next == end) return Continue(depth, begin, next);
      if (depth + 1 == states_.size()) states_.emplace_back();
      states_[depth + 1] = state;
      Continue(depth + 1, begin, next);
      begin = next;
    }
  }

  static absl::Span<const int64_t> ValuesOf(const Instruction& instruction,
                                            absl::Span<const int64_t> decisions) {
    if (instruction.decision_count == 0) return {};
    return decisions.subspan(instruction.decision_begin, instruction.decision_count);
  }

  const Trace& trace_;
  const absl::Span<const absl::Span<const int64_t>> sorted_;
  const ReplayedTogether done_;
  std::deque<PartialReplay> states_;
};

}  // namespace

void ReplayAll(std::shared_ptr<const ir::Workload> workload, const Trace& trace,
               absl::Span<const absl::Span<const int64_t>> sorted, ReplayedTogether done) {
  GroupReplay(trace, sorted, done).Run(BeginReplay(std::move(workload), trace));
}

absl::StatusOr<Replayed> ReplayWith(std::shared_ptr<const ir::Workload> workload,
                                    const Trace& trace, Decider& decider) {
  PartialReplay partial = BeginReplay(std::move(workload), trace);
  HONE_RETURN_IF_ERROR(ContinueReplay(trace, decider, partial));
  return std::move(partial.replayed);
}

absl::StatusOr<ir::Program> Replay(std::shared_ptr<const ir::Workload> workload, const Trace& trace,
                                   absl::Span<const int64_t> decisions) {
  if (static_cast<int>(decisions.size()) != trace.decisions) {
    return absl::InvalidArgumentError(
        absl::StrCat("the trace takes ", trace.decisions, " decisions, not ", decisions.size()));
  }
  GivenDecider decider(decisions);
  HONE_ASSIGN_OR_RETURN(Replayed replayed, ReplayWith(std::move(workload), trace, decider));
  return std::move(replayed.program);
}

int64_t Site::RowOf(absl::Span<const int64_t> values) const {
  int64_t row = 0;
  while (row < RowCount() &&
         !std::equal(values.begin(), values.end(), rows.begin() + row * count)) {
    ++row;
  }
  return row;
}

bool Site::IsLegal(absl::Span<const int64_t> values) const {
  if (static_cast<int>(values.size()) != count) return false;
  if (kind == Kind::kChoice) return RowOf(values) < RowCount();
  int64_t inner = 1;
  for (int i = count - 1; i >= 0; --i) {
    if (values[i] < 1 || values[i] > extent || (i > 0 && inner > extent / values[i])) return false;
    if (i > 0) inner *= values[i];
  }
  if (max_inner > 0 && count > 1 && values[count - 1] > max_inner) return false;
  if (kind == Kind::kPerfectTile) return extent % inner == 0 && values[0] == extent / inner;
  return values[0] == ir::CeilDivInt(extent, inner);
}

void Site::Sample(Rng& rng, absl::Span<int64_t> values) const {
  if (kind == Kind::kChoice) {
    const size_t row = rng.Below(RowCount());
    std::copy_n(rows.begin() + row * count, count, values.begin());
    return;
  }
  int64_t rest = extent;
  int64_t inner = 1;
  for (int i = count - 1; i > 0; --i) {
    int64_t limit = kind == Kind::kPerfectTile ? rest : extent / inner;
    if (i == count - 1 && max_inner > 0) limit = std::min(limit, max_inner);
    if (kind == Kind::kPerfectTile) {
      std::vector<int64_t> divisors = Divisors(rest);
      while (divisors.back() > limit) divisors.pop_back();
      values[i] = divisors[rng.Below(divisors.size())];
      rest /= values[i];
    } else {
      // Log-uniform over the sizes. Half of the time, round to a size that leaves no remainder
      // tile.
      int bits = 0;
      while ((int64_t{2} << bits) <= limit) ++bits;
      const int64_t low = int64_t{1} << rng.Below(bits + 1);
      const int64_t high = std::min(limit, 2 * low - 1);
      values[i] = low + static_cast<int64_t>(rng.Below(high - low + 1));
      if (rng.Below(2) == 0) {
        const int64_t total = ir::CeilDivInt(extent, inner);
        values[i] = std::min(limit, ir::CeilDivInt(total, ir::CeilDivInt(total, values[i])));
      }
      inner *= values[i];
    }
  }
  values[0] = kind == Kind::kPerfectTile ? rest : ir::CeilDivInt(extent, inner);
}

}  // namespace hone::schedule
