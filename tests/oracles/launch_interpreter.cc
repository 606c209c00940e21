#include "tests/oracles/launch_interpreter.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::lower {

using ir::AtomId;
using ir::Index;

absl::Status LaunchInterpreter::Run(const LoweredKernel& kernel) {
  std::vector<ThreadVar> blocks;
  thread_vars_.clear();
  StmtId body = kernel.body;
  for (; p_.stmts[body].kind == Stmt::Kind::kFor && p_.stmts[body].loop == ir::LoopKind::kBound;
       body = p_.stmts[body].children[0]) {
    const Stmt& loop = p_.stmts[body];
    (loop.axis >= ir::ThreadAxis::kThreadX ? thread_vars_ : blocks)
        .push_back({loop.var, loop.extent});
  }
  int64_t threads = 1, count = 1;
  for (const ThreadVar& var : thread_vars_) threads *= var.extent;
  for (const ThreadVar& var : blocks) count *= var.extent;
  memory_.EnterBlocks(threads);
  for (int64_t b = count; b-- > 0;) {
    SetVars(blocks, b);
    pieces_.clear();
    outer_.clear();
    HONE_RETURN_IF_ERROR(WalkThreads(body, threads));
    HONE_RETURN_IF_ERROR(RunPieces(threads));
    if (memory_.HasUnfinishedCopies()) {
      return absl::FailedPreconditionError(
          absl::StrCat("kernel ", kernel.name, " ends without waiting for its copies"));
    }
    if (b > 0) memory_.NextBlock();
  }
  memory_.LeaveBlocks();
  return absl::OkStatus();
}

void LaunchInterpreter::SetVars(absl::Span<const ThreadVar> vars, int64_t number) {
  for (size_t v = vars.size(); v-- > 0;) {
    vars_[vars[v].var] = number % vars[v].extent;
    number /= vars[v].extent;
  }
}

absl::Status LaunchInterpreter::WalkThreads(StmtId id, int64_t threads) {
  if (!p_.HasBarrier(id)) {
    if (id != kNoStmt) pieces_.push_back({id, outer_});
    return absl::OkStatus();
  }
  const Stmt& stmt = p_.stmts[id];
  switch (stmt.kind) {
    case Stmt::Kind::kBarrier:
      HONE_RETURN_IF_ERROR(RunPieces(threads));
      memory_.Barrier();
      return absl::OkStatus();
    case Stmt::Kind::kCommitCopies:
      HONE_RETURN_IF_ERROR(RunPieces(threads));
      memory_.CommitCopies();
      return absl::OkStatus();
    case Stmt::Kind::kWaitForCopies:
      HONE_RETURN_IF_ERROR(RunPieces(threads));
      memory_.WaitForCopies(stmt.pending);
      return absl::OkStatus();
    case Stmt::Kind::kSeq:
      for (const StmtId child : stmt.children) HONE_RETURN_IF_ERROR(WalkThreads(child, threads));
      return absl::OkStatus();
    case Stmt::Kind::kIf: {
      HONE_ASSIGN_OR_RETURN(const int64_t value, OfAllThreads(stmt.condition.index, threads));
      if (value >= 0 && value < stmt.condition.extent)
        return WalkThreads(stmt.children[0], threads);
      return stmt.children.size() > 1 ? WalkThreads(stmt.children[1], threads) : absl::OkStatus();
    }
    case Stmt::Kind::kFor: {
      int64_t begin = 0, end = stmt.extent;
      for (const Index& bound : stmt.begins) {
        HONE_ASSIGN_OR_RETURN(const int64_t value, OfAllThreads(bound, threads));
        begin = std::max(begin, value);
      }
      for (const Index& bound : stmt.ends) {
        HONE_ASSIGN_OR_RETURN(const int64_t value, OfAllThreads(bound, threads));
        end = std::min(end, value);
      }
      outer_.emplace_back(stmt.var, 0);
      for (int64_t i = begin; i < end; ++i) {
        vars_[stmt.var] = outer_.back().second = i;
        HONE_RETURN_IF_ERROR(WalkThreads(stmt.children[0], threads));
      }
      outer_.pop_back();
      return absl::OkStatus();
    }
    case Stmt::Kind::kStore:
      return RunShuffle(id, threads);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LaunchInterpreter::OfAllThreads(const Index& index, int64_t threads) {
  for (const auto& [var, value] : outer_) vars_[var] = value;
  std::optional<int64_t> all;
  for (int64_t t = 0; t < threads; ++t) {
    SetVars(thread_vars_, t);
    const int64_t value = p_.atoms.Evaluate(index, vars_);
    if (all.value_or(value) != value) {
      return absl::FailedPreconditionError(absl::StrCat(
          "only some threads of a block reach a barrier or shuffle: ", p_.atoms.ToString(index),
          " differs between them"));
    }
    all = value;
  }
  return *all;
}

absl::Status LaunchInterpreter::RunPieces(int64_t threads) {
  HONE_RETURN_IF_ERROR(ForEachThread(threads, [&](int64_t) -> absl::Status {
    for (const Piece& piece : pieces_) {
      for (const auto& [var, value] : piece.values) vars_[var] = value;
      HONE_RETURN_IF_ERROR(thread_.Run(piece.stmt));
    }
    return absl::OkStatus();
  }));
  pieces_.clear();
  return absl::OkStatus();
}

absl::Status LaunchInterpreter::RunShuffle(StmtId id, int64_t threads) {
  HONE_RETURN_IF_ERROR(RunPieces(threads));
  const Stmt& shuffle = p_.stmts[id];
  for (const auto* list : {&shuffle.conditions, &shuffle.guards}) {
    for (const ir::Condition& condition : *list) {
      HONE_ASSIGN_OR_RETURN(const int64_t value, OfAllThreads(condition.index, threads));
      if (value < 0 || value >= condition.extent) return absl::OkStatus();
    }
  }
  for (const auto& [var, value] : outer_) vars_[var] = value;
  std::vector<Tuple> values(threads);
  HONE_RETURN_IF_ERROR(ForEachThread(threads, [&](int64_t thread) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(values[thread], thread_.ValuesOf(id));
    return absl::OkStatus();
  }));
  return ForEachThread(threads, [&](int64_t thread) -> absl::Status {
    const int64_t other = thread ^ shuffle.lane_xor;
    if (other >= threads || other / p_.shuffle_width != thread / p_.shuffle_width) {
      return absl::FailedPreconditionError(
          absl::StrCat("thread ", thread, " reads a value of thread ", other,
                       ", which is not in its sub-group\n", p_.ToText(id)));
    }
    return thread_.Write(id, values[other]);
  });
}

absl::Status LaunchInterpreter::ForEachThread(int64_t threads,
                                              absl::FunctionRef<absl::Status(int64_t)> run) {
  std::vector<int64_t> order(threads);
  std::iota(order.begin(), order.end(), 0);
  if (order_ == ThreadOrder::kBackward) std::reverse(order.begin(), order.end());
  if (order_ == ThreadOrder::kShuffled) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_() % i]);
  }
  for (const int64_t thread : order) {
    SetVars(thread_vars_, thread);
    memory_.SetThread(thread);
    HONE_RETURN_IF_ERROR(run(thread));
  }
  return absl::OkStatus();
}

}  // namespace hone::lower
