#include "common/schedule/recorded/replay_program.h"

#include <algorithm>
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

// Of every step of the program that this thread evaluates, kLanes numbers.
std::vector<int64_t>& Values() {
  thread_local std::vector<int64_t> values;
  return values;
}

int64_t* Lanes(int32_t step) { return Values().data() + static_cast<size_t>(step) * kLanes; }

}  // namespace

// Pairs the numbers of the program with those of the recording.
class ReplayProgram::Pairing {
 public:
  Pairing(const Recording& recording, std::vector<Varying>& varying)
      : recording_(recording), varying_(varying) {}

  void Number(const int64_t& number) { Next(&number, number); }
  void Constant(const ir::Index& index) { Next(&index, index.constant()); }
  bool agree() const { return agree_ && next_ == recording_.numbers.size(); }

 private:
  void Next(const void* place, int64_t value) {
    const size_t at = next_++;
    agree_ = agree_ && at < recording_.numbers.size() && recording_.values[at] == value;
    if (agree_ && recording_.numbers[at] >= 0 && seen_.insert(place).second)
      varying_.push_back({at, recording_.numbers[at]});
  }

  const Recording& recording_;
  std::vector<Varying>& varying_;
  absl::flat_hash_set<const void*> seen_;
  size_t next_ = 0;
  bool agree_ = true;
};

absl::StatusOr<std::shared_ptr<const ReplayProgram>> ReplayProgram::Create(
    const Recording& recording, std::unique_ptr<const ir::Program> program) {
  if (recording.legal != (program != nullptr))
    return absl::InternalError("the recorded replay and the concrete one differ in legality");
  auto made = std::shared_ptr<ReplayProgram>(new ReplayProgram);
  made->program_ = std::move(program);
  if (made->program_ != nullptr) {
    Pairing pairing(recording, made->numbers_);
    ir::NumbersOf numbers(*made->program_, pairing);
    if (!pairing.agree())
      return absl::InternalError("the recorded replay and the concrete one differ in numbers");
  }
  // What a guard needs comes right before it, so that most of the code waits for the guards.
  const std::vector<Step>& steps = recording.steps;
  made->tables_ = recording.tables;
  made->values_ = steps.size() * kLanes;
  std::vector<bool> done(steps.size(), false);
  const auto need = [&](auto&& self, int32_t step) -> void {
    if (done[step]) return;
    done[step] = true;
    const Step& s = steps[step];
    if (s.op == Op::kConstant) {
      made->constants_.push_back({.a = step, .value = s.value});
      return;
    }
    if (s.op != Op::kInput) {
      self(self, s.a);
      if (s.b >= 0 && s.op != Op::kMember) self(self, s.b);
    }
    made->code_.push_back({s.op, s.a, s.b, step});
  };
  for (const Guard& guard : recording.guards) {
    need(need, guard.a);
    need(need, guard.b);
    made->checks_.push_back({guard, made->code_.size()});
  }
  for (const Varying& number : made->numbers_) need(need, number.step);
  return made;
}

ReplayFrame::ReplayFrame(std::shared_ptr<const ReplayProgram> replay)
    : replay_(std::move(replay)) {}

// Finds the numbers that vary in the frame's own program.
class ReplayFrame::Places {
 public:
  Places(absl::Span<const ReplayProgram::Varying> varying, std::vector<Place>& places)
      : varying_(varying), places_(places) {}
  void Number(const int64_t& number) {
    if (Varies()) places_.push_back({const_cast<int64_t*>(&number), nullptr, Step()});
  }
  void Constant(const ir::Index& index) {
    if (Varies()) places_.push_back({nullptr, const_cast<ir::Index*>(&index), Step()});
  }

 private:
  bool Varies() {
    return places_.size() < varying_.size() && varying_[places_.size()].place == next_++;
  }
  int32_t Step() const { return varying_[places_.size()].step; }

  const absl::Span<const ReplayProgram::Varying> varying_;
  std::vector<Place>& places_;
  size_t next_ = 0;
};

const ir::Program& ReplayFrame::ProgramOf(int lane) {
  if (!placed_) {
    program_ = *replay_->program_;
    Places places(replay_->numbers_, places_);
    ir::NumbersOf numbers(program_, places);
    placed_ = true;
  }
  for (const Place& place : places_) {
    const int64_t value = Lanes(place.step)[lane];
    if (place.number != nullptr) {
      *place.number = value;
    } else {
      *place.index += value - place.index->constant();
    }
  }
  return program_;
}

void ReplayFrame::Run(size_t begin, size_t end, DecisionLanes decisions) {
  int64_t* const values = Values().data();
  const auto lanes = [&](int32_t step) { return values + static_cast<size_t>(step) * kLanes; };
  for (size_t at = begin; at < end; ++at) {
    const ReplayProgram::Code& code = replay_->code_[at];
    int64_t* const out = lanes(code.out);
    if (code.op == Op::kInput) {
      for (size_t lane = 0; lane < decisions.size(); ++lane) out[lane] = decisions[lane][code.a];
      continue;
    }
    const int64_t* const a = lanes(code.a);
    if (code.op == Op::kMember) {
      std::fill_n(out, kLanes, 0);
      for (const int64_t entry : replay_->tables_[code.b]) {
        for (int lane = 0; lane < kLanes; ++lane)
          out[lane] |= static_cast<int64_t>(a[lane] == entry);
      }
      continue;
    }
    const int64_t* const b = code.b < 0 ? a : lanes(code.b);
    const auto each = [&](auto&& of) {
      for (int lane = 0; lane < kLanes; ++lane) out[lane] = of(a[lane], b[lane]);
    };
    switch (code.op) {
      case Op::kAdd:
        each([](int64_t x, int64_t y) { return Evaluate(Op::kAdd, x, y); });
        break;
      case Op::kSub:
        each([](int64_t x, int64_t y) { return Evaluate(Op::kSub, x, y); });
        break;
      case Op::kMul:
        each([](int64_t x, int64_t y) { return Evaluate(Op::kMul, x, y); });
        break;
      case Op::kMin:
        each([](int64_t x, int64_t y) { return Evaluate(Op::kMin, x, y); });
        break;
      case Op::kMax:
        each([](int64_t x, int64_t y) { return Evaluate(Op::kMax, x, y); });
        break;
      case Op::kQuotient:
      case Op::kRemainder:
      case Op::kFloorDiv:
      case Op::kFloorMod:
        each([&](int64_t x, int64_t y) { return Quotient(code.op, x, y); });
        break;
      default:
        each([&](int64_t x, int64_t y) { return Evaluate(code.op, x, y); });
        break;
    }
  }
}

uint32_t ReplayFrame::Match(DecisionLanes decisions) {
  if (Values().size() < replay_->values_) Values().resize(replay_->values_);
  for (const Step& constant : replay_->constants_)
    std::fill_n(Lanes(constant.a), kLanes, constant.value);
  uint32_t match = (uint32_t{1} << decisions.size()) - 1;
  size_t at = 0;
  for (const ReplayProgram::Check& check : replay_->checks_) {
    Run(at, check.code_end, decisions);
    at = check.code_end;
    const int64_t* const a = Lanes(check.guard.a);
    const int64_t* const b = Lanes(check.guard.b);
    uint32_t holds = 0;
    if (check.guard.relation == Guard::Relation::kLess) {
      for (int lane = 0; lane < kLanes; ++lane)
        holds |= static_cast<uint32_t>(a[lane] < b[lane]) << lane;
    } else {
      for (int lane = 0; lane < kLanes; ++lane)
        holds |= static_cast<uint32_t>(a[lane] == b[lane]) << lane;
    }
    match &= check.guard.holds ? holds : ~holds;
    if (match == 0) return 0;
  }
  Run(at, replay_->code_.size(), decisions);
  return match;
}

}  // namespace hone::recorded
