#include "common/schedule/recorded/replay_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/schedule/recorded/arithmetic.h"
#include "common/schedule/recorded/program_numbers.h"

namespace hone::recorded {
namespace {

// Division of 64 bits takes several times as long, and numbers here are seldom large.
int64_t Quotient(Op op, int64_t a, int64_t b) {
  if (((a | b) >> 31) != 0 || b == 0) return Evaluate(op, a, b);
  const auto x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
  return op == Op::kQuotient || op == Op::kFloorDiv ? x / y : x % y;
}

#if defined(__x86_64__)
#define HONE_FOR_EACH_ISA __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HONE_FOR_EACH_ISA
#endif

// out = of(a, b), lane by lane.
template <typename Of>
inline void ForLanes(int64_t* out, const int64_t* a, const int64_t* b, Of of) {
  for (int lane = 0; lane < kLanes; ++lane) out[lane] = of(a[lane], b[lane]);
}
HONE_FOR_EACH_ISA void Add(int64_t* out, const int64_t* a, const int64_t* b) {
  ForLanes(out, a, b, [](int64_t x, int64_t y) { return Evaluate(Op::kAdd, x, y); });
}
HONE_FOR_EACH_ISA void Sub(int64_t* out, const int64_t* a, const int64_t* b) {
  ForLanes(out, a, b, [](int64_t x, int64_t y) { return Evaluate(Op::kSub, x, y); });
}
HONE_FOR_EACH_ISA void Mul(int64_t* out, const int64_t* a, const int64_t* b) {
  ForLanes(out, a, b, [](int64_t x, int64_t y) { return Evaluate(Op::kMul, x, y); });
}
HONE_FOR_EACH_ISA void Min(int64_t* out, const int64_t* a, const int64_t* b) {
  ForLanes(out, a, b, [](int64_t x, int64_t y) { return Evaluate(Op::kMin, x, y); });
}
HONE_FOR_EACH_ISA void Max(int64_t* out, const int64_t* a, const int64_t* b) {
  ForLanes(out, a, b, [](int64_t x, int64_t y) { return Evaluate(Op::kMax, x, y); });
}
HONE_FOR_EACH_ISA void Member(int64_t* out, const int64_t* a, absl::Span<const int64_t> table) {
  std::fill_n(out, kLanes, 0);
  for (const int64_t entry : table) {
    for (int lane = 0; lane < kLanes; ++lane) out[lane] |= static_cast<int64_t>(a[lane] == entry);
  }
}
HONE_FOR_EACH_ISA uint32_t Less(const int64_t* a, const int64_t* b) {
  uint32_t holds = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    holds |= static_cast<uint32_t>(a[lane] < b[lane]) << lane;
  return holds;
}
HONE_FOR_EACH_ISA uint32_t Equal(const int64_t* a, const int64_t* b) {
  uint32_t holds = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    holds |= static_cast<uint32_t>(a[lane] == b[lane]) << lane;
  return holds;
}

// Of every step of the program that this thread evaluates, kLanes numbers.
std::vector<int64_t>& Values() {
  thread_local std::vector<int64_t> values;
  return values;
}

int64_t* Lanes(int32_t step) { return Values().data() + static_cast<size_t>(step) * kLanes; }

}  // namespace

// Pairs the numbers of the program with those of the recording.
class ReplayTable::Pairing {
 public:
  explicit Pairing(const Recording& recording) : recording_(recording) {}

  void Number(const int64_t& number) { Next(number); }
  void Constant(const ir::Index& index) { Next(index.constant()); }
  bool agree() const { return agree_ && next_ == recording_.numbers.size(); }

 private:
  void Next(int64_t value) {
    agree_ = agree_ && next_ < recording_.numbers.size() && recording_.values[next_] == value;
    ++next_;
  }

  const Recording& recording_;
  size_t next_ = 0;
  bool agree_ = true;
};

int32_t ReplayTable::Share(const Recording& recording, int32_t id, std::vector<int32_t>& shared) {
  if (shared[id] >= 0) return shared[id];
  Step step = recording.steps[id];
  if (step.op == Op::kMember) {
    const std::vector<int64_t>& table = recording.tables[step.b];
    const auto same = std::find(tables_.begin(), tables_.end(), table);
    step.b = static_cast<int32_t>(same - tables_.begin());
    if (same == tables_.end()) tables_.push_back(table);
    step.a = Share(recording, step.a, shared);
  } else if (step.op != Op::kConstant && step.op != Op::kInput) {
    step.a = Share(recording, step.a, shared);
    if (step.b >= 0) step.b = Share(recording, step.b, shared);
  }
  const auto [found, fresh] = step_ids_.emplace(step, static_cast<int32_t>(steps_.size()));
  if (fresh) {
    if (step.op == Op::kConstant) constants_.push_back(found->second);
    steps_.push_back(step);
  }
  return shared[id] = found->second;
}

std::vector<int32_t> ReplayTable::CodeOf(absl::Span<const int32_t> needed) const {
  std::vector<bool> marked(steps_.size(), false);
  for (const int32_t step : needed) marked[step] = true;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (!marked[i] || step.op == Op::kConstant || step.op == Op::kInput) continue;
    marked[step.a] = true;
    if (step.b >= 0 && step.op != Op::kMember) marked[step.b] = true;
  }
  std::vector<int32_t> code;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (marked[i] && steps_[i].op != Op::kConstant) code.push_back(static_cast<int32_t>(i));
  }
  return code;
}

absl::StatusOr<int> ReplayTable::Add(const Recording& recording,
                                     std::unique_ptr<const ir::Program> program) {
  if (recording.legal != (program != nullptr))
    return absl::InternalError("the recorded replay and the concrete one differ in legality");
  if (program != nullptr) {
    Pairing pairing(recording);
    ir::NumbersOf numbers(*program, pairing);
    if (!pairing.agree())
      return absl::InternalError("the recorded replay and the concrete one differ in numbers");
  }
  Structure structure{.program = std::move(program)};
  std::vector<int32_t> shared(recording.steps.size(), -1), needed;
  for (const Guard& guard : recording.guards) {
    const Guard same{.relation = guard.relation,
                     .a = Share(recording, guard.a, shared),
                     .b = Share(recording, guard.b, shared)};
    const auto found = std::find_if(guards_.begin(), guards_.end(),
                                    [&](const SharedGuard& other) { return other.guard == same; });
    structure.outcomes.push_back({static_cast<int32_t>(found - guards_.begin()), guard.holds});
    if (found == guards_.end()) guards_.push_back({same});
    guards_[structure.outcomes.back().guard].held[guard.holds] = true;
  }
  for (size_t place = 0; place < recording.numbers.size(); ++place) {
    if (recording.numbers[place] < 0) continue;
    structure.numbers.push_back({place, Share(recording, recording.numbers[place], shared)});
    needed.push_back(structure.numbers.back().step);
  }
  const std::vector<int32_t> code = CodeOf(needed);
  needed.clear();
  for (const SharedGuard& guard : guards_) {
    needed.push_back(guard.guard.a);
    needed.push_back(guard.guard.b);
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].op == Op::kInput) needed.push_back(static_cast<int32_t>(i));
  }
  guard_code_ = CodeOf(needed);
  std::set_difference(code.begin(), code.end(), guard_code_.begin(), guard_code_.end(),
                      std::back_inserter(structure.code));
  structures_.push_back(std::move(structure));
  for (Structure& each : structures_) {
    std::partition(each.outcomes.begin(), each.outcomes.end(),
                   [&](const Outcome& outcome) { return guards_[outcome.guard].contested(); });
  }
  return structures() - 1;
}

void ReplayFrame::Run(absl::Span<const int32_t> code) {
  int64_t* const values = Values().data();
  const auto lanes = [&](int32_t step) { return values + static_cast<size_t>(step) * kLanes; };
  for (const int32_t id : code) {
    const Step& step = table_->steps_[id];
    int64_t* const out = lanes(id);
    if (step.op == Op::kInput) {
      for (size_t lane = 0; lane < decisions_.size(); ++lane) out[lane] = decisions_[lane][step.a];
      continue;
    }
    const int64_t* const a = lanes(step.a);
    const int64_t* const b = step.op == Op::kMember || step.b < 0 ? a : lanes(step.b);
    switch (step.op) {
      case Op::kAdd:
        Add(out, a, b);
        break;
      case Op::kSub:
        Sub(out, a, b);
        break;
      case Op::kMul:
        Mul(out, a, b);
        break;
      case Op::kMin:
        Min(out, a, b);
        break;
      case Op::kMax:
        Max(out, a, b);
        break;
      case Op::kMember:
        Member(out, a, table_->tables_[step.b]);
        break;
      case Op::kQuotient:
      case Op::kRemainder:
      case Op::kFloorDiv:
      case Op::kFloorMod:
        ForLanes(out, a, b, [&](int64_t x, int64_t y) { return Quotient(step.op, x, y); });
        break;
      default:
        ForLanes(out, a, b, [&](int64_t x, int64_t y) { return Evaluate(step.op, x, y); });
        break;
    }
  }
}

absl::Span<const int> ReplayFrame::Match(DecisionLanes decisions) {
  decisions_ = decisions;
  const size_t values = table_->steps_.size() * kLanes;
  if (Values().size() < values) Values().resize(values);
  for (const int32_t constant : table_->constants_)
    std::fill_n(Lanes(constant), kLanes, table_->steps_[constant].value);
  Run(table_->guard_code_);
  holds_.resize(table_->guards_.size());
  for (size_t g = 0; g < holds_.size(); ++g) {
    const Guard& guard = table_->guards_[g].guard;
    const int64_t* const a = Lanes(guard.a);
    const int64_t* const b = Lanes(guard.b);
    holds_[g] = guard.relation == Guard::Relation::kLess ? Less(a, b) : Equal(a, b);
  }
  matched_.assign(decisions.size(), -1);
  evaluated_.assign(table_->structures_.size(), false);
  uint32_t open = (uint32_t{1} << decisions.size()) - 1;
  for (int s = 0; s < table_->structures() && open != 0; ++s) {
    uint32_t match = open;
    for (const ReplayTable::Outcome& outcome : table_->structures_[s].outcomes) {
      match &= outcome.holds ? holds_[outcome.guard] : ~holds_[outcome.guard];
      if (match == 0) break;
    }
    open &= ~match;
    for (size_t lane = 0; match != 0; ++lane, match >>= 1) {
      if ((match & 1) != 0) matched_[lane] = s;
    }
  }
  return matched_;
}

uint64_t ReplayFrame::Signature(int lane) const {
  uint64_t signature = table_->guards_.size();
  for (size_t g = 0; g < holds_.size(); ++g) {
    if (!table_->guards_[g].contested()) continue;
    signature = (signature ^ (holds_[g] >> lane & 1)) * 0x9e3779b97f4a7c15u;
    signature ^= signature >> 29;
  }
  return signature;
}

// Finds the numbers that vary in a copy of a structure's program.
class ReplayFrame::Places {
 public:
  Places(absl::Span<const ReplayTable::Varying> varying, std::vector<Place>& places)
      : varying_(varying), places_(places) {}
  void Number(const int64_t& number) { Next(&number, {const_cast<int64_t*>(&number), nullptr, 0}); }
  void Constant(const ir::Index& index) {
    Next(&index, {nullptr, const_cast<ir::Index*>(&index), 0});
  }

 private:
  void Next(const void* address, Place place) {
    if (at_ == varying_.size() || varying_[at_].place != next_++) return;
    place.step = varying_[at_++].step;
    if (seen_.insert(address).second) places_.push_back(place);
  }

  const absl::Span<const ReplayTable::Varying> varying_;
  std::vector<Place>& places_;
  absl::flat_hash_set<const void*> seen_;
  size_t at_ = 0, next_ = 0;
};

const ir::Program& ReplayFrame::ProgramOf(int lane) {
  const int id = matched_[lane];
  const ReplayTable::Structure& structure = table_->structures_[id];
  if (!evaluated_[id]) {
    Run(structure.code);
    evaluated_[id] = true;
  }
  copies_.resize(table_->structures_.size());
  std::unique_ptr<Copy>& copy = copies_[id];
  if (copy == nullptr) {
    copy = std::make_unique<Copy>();
    copy->program = *structure.program;
    Places places(structure.numbers, copy->places);
    ir::NumbersOf numbers(copy->program, places);
  }
  for (const Place& place : copy->places) {
    const int64_t value = Lanes(place.step)[lane];
    if (place.number != nullptr) {
      *place.number = value;
    } else {
      *place.index += value - place.index->constant();
    }
  }
  return copy->program;
}

}  // namespace hone::recorded
