#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/expr.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {
namespace {

class Printer {
 public:
  explicit Printer(const LoweredProgram& program) : p_(program) {}

  std::string PrintStmt(StmtId id) {
    Print(id, 0);
    return std::move(text_);
  }

  std::string Print() {
    constexpr absl::string_view kStorage[] = {"argument", "packed",   "workspace", "thread",
                                              "stack",    "register", "shared",    "unused"};
    for (size_t b = 0; b < p_.storage.size(); ++b) {
      const Storage& storage = p_.storage[b];
      if (storage.kind == Storage::Kind::kUnused) continue;
      absl::StrAppend(&text_, "buffer ", p_.buffers[b].name, ": ",
                      ir::TypeText(p_.buffers[b].dtype, p_.buffers[b].shape), " ",
                      kStorage[static_cast<int>(storage.kind)], "\n");
    }
    for (const LoweredKernel& kernel : p_.kernels) {
      absl::StrAppend(&text_, "kernel ", kernel.name, "\n");
      Print(kernel.body, 1);
    }
    return std::move(text_);
  }

 private:
  std::string Text(const ir::Index& index) const { return p_.atoms.ToString(index); }
  std::string Text(const ir::Condition& c) const {
    return absl::StrCat("0 <= ", Text(c.index), " < ", c.extent);
  }

  void Print(StmtId id, int depth) {
    if (id == kNoStmt) return;
    const Stmt& stmt = p_.stmts[id];
    const std::string indent(2 * depth, ' ');
    switch (stmt.kind) {
      case Stmt::Kind::kSeq:
        for (StmtId child : stmt.children) Print(child, depth);
        return;
      case Stmt::Kind::kFor: {
        absl::StrAppend(&text_, indent,
                        stmt.loop == ir::LoopKind::kBound ? ir::ThreadAxisName(stmt.axis)
                                                          : ir::LoopKindName(stmt.loop),
                        " ", p_.atoms[stmt.var].name, " in ", stmt.extent,
                        ir::PrintAnnotations(stmt.annotations));
        for (const ir::Index& begin : stmt.begins) absl::StrAppend(&text_, " from ", Text(begin));
        for (const ir::Index& end : stmt.ends) absl::StrAppend(&text_, " to ", Text(end));
        text_ += "\n";
        Print(stmt.children[0], depth + 1);
        return;
      }
      case Stmt::Kind::kBarrier:
        absl::StrAppend(&text_, indent, "barrier\n");
        return;
      case Stmt::Kind::kCommitCopies:
        absl::StrAppend(&text_, indent, "commit copies\n");
        return;
      case Stmt::Kind::kWaitForCopies:
        absl::StrAppend(&text_, indent, "wait for copies, ", stmt.pending, " pending\n");
        return;
      case Stmt::Kind::kIf:
        absl::StrAppend(&text_, indent, "if ", Text(stmt.condition), "\n");
        Print(stmt.children[0], depth + 1);
        if (stmt.children.size() > 1) {
          absl::StrAppend(&text_, indent, "else\n");
          Print(stmt.children[1], depth + 1);
        }
        return;
      case Stmt::Kind::kStore: {
        const auto name = [&](ir::BufferId b) { return p_.buffers[b].name; };
        absl::StrAppend(&text_, indent, stmt.is_async ? "async " : "",
                        absl::StrJoin(stmt.outputs, ", ",
                                      [&](std::string* out, ir::BufferId b) { *out += name(b); }),
                        ir::PrintIndices(p_.atoms, stmt.indices), " = ",
                        stmt.lane_xor == 0 ? "" : absl::StrCat("lane^", stmt.lane_xor, " "),
                        stmt.reducer == ir::Reducer::kNone
                            ? ""
                            : absl::StrCat(ir::ReducerName(stmt.reducer), " "),
                        absl::StrJoin(stmt.values, ", ", [&](std::string* out, ir::ExprId v) {
                          *out += ir::PrintExpr(p_.pool, p_.atoms, v, name);
                        }));
        for (const auto* list : {&stmt.conditions, &stmt.guards}) {
          for (const ir::Condition& c : *list) absl::StrAppend(&text_, " if ", Text(c));
        }
        absl::StrAppend(&text_, ir::PrintAnnotations(stmt.annotations), "\n");
        return;
      }
    }
  }

  const LoweredProgram& p_;
  std::string text_;
};

}  // namespace

bool LoweredProgram::HasBarrier(StmtId id) const {
  if (id == kNoStmt) return false;
  const Stmt::Kind kind = stmts[id].kind;
  return kind == Stmt::Kind::kBarrier || kind == Stmt::Kind::kCommitCopies ||
         kind == Stmt::Kind::kWaitForCopies || stmts[id].lane_xor > 0 ||
         std::ranges::any_of(stmts[id].children, [&](StmtId child) { return HasBarrier(child); });
}

StmtId LoweredProgram::AddCopy(StmtId loop, absl::string_view suffix,
                               std::vector<std::pair<ir::AtomId, ir::Index>>& renamed) {
  const Stmt original = stmts[loop];
  const ir::AtomId var =
      atoms.AddVar(absl::StrCat(atoms[original.var].name, suffix), original.extent);
  renamed.emplace_back(original.var, ir::Index::Of(var));
  return Add(
      {.kind = Stmt::Kind::kFor, .loop = original.loop, .var = var, .extent = original.extent});
}

StmtId LoweredProgram::Nest(absl::Span<const StmtId> loops, StmtId inner) {
  for (size_t l = loops.size(); l-- > 0;) {
    stmts[loops[l]].children = {inner};
    inner = loops[l];
  }
  return inner;
}

std::string LoweredProgram::ToText() const { return Printer(*this).Print(); }
std::string LoweredProgram::ToText(StmtId stmt) const { return Printer(*this).PrintStmt(stmt); }

}  // namespace hone::lower
