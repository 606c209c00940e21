#include "worker/compile/c/c_comments.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "worker/compile/c/c_memory.h"

namespace hone::codegen {

using ir::BufferId;
using lower::LoweredProgram;
using lower::Stmt;
using lower::StmtId;
using lower::Storage;

namespace {

std::string ShapeText(const ir::Shape& shape) { return absl::StrJoin(shape, " x "); }

std::string DescribeStore(const LoweredProgram& program, const Stmt& store,
                          const std::vector<std::string>& names) {
  const BufferId output = store.outputs[0];
  const std::string& to = names[output];
  std::vector<std::string> from;
  for (const ir::ExprId value : store.values) {
    program.pool.VisitLoads(value, [&](const ir::Expr& load) {
      const std::string& name = names[load.buffer];
      const bool known = std::find(from.begin(), from.end(), name) != from.end();
      if (!known && load.buffer != output) from.push_back(name);
    });
  }
  std::string inputs;
  for (size_t i = 0; i < from.size(); ++i) {
    absl::StrAppend(&inputs, i == 0 ? "" : i + 1 == from.size() ? " and " : ", ", from[i]);
  }
  if (store.reducer != ir::Reducer::kNone) {
    const ir::Expr& value = program.pool[store.values[0]];
    const bool is_sum = store.reducer == ir::Reducer::kSum;
    if (is_sum && value.op == ir::Op::kMul && from.size() == 2) {
      return absl::StrCat("Add products of ", inputs, " to ", to, ".");
    }
    return absl::StrCat("Reduce ", inputs, inputs.empty() ? "" : " ", "to ", to, " (",
                        ir::ReducerName(store.reducer), ").");
  }
  if (store.lane_xor > 0) return absl::StrCat("Copy ", inputs, " of another lane to ", to, ".");
  const ir::Op op = program.pool[store.values[0]].op;
  const Storage::Kind kind = program.storage[output].kind;
  if (op == ir::Op::kConst) return absl::StrCat("Initialize ", to, ".");
  if (op != ir::Op::kLoad) {
    return absl::StrCat("Compute ", to, from.empty() ? "" : " from ", inputs, ".");
  }
  if (kind == Storage::Kind::kShared) {
    const ir::Shape& shape = program.buffers[output].shape;
    return absl::StrCat("Copy ", inputs, " to shared memory (", to,
                        shape.empty() ? "" : absl::StrCat(", ", ShapeText(shape)), ").");
  }
  return absl::StrCat("Copy ", inputs, " to ", to, ".");
}

void CollectStores(const LoweredProgram& program, StmtId id, const std::vector<std::string>& names,
                   std::set<std::string>& descriptions) {
  if (id == lower::kNoStmt || descriptions.size() > 1) return;
  const Stmt& stmt = program.stmts[id];
  if (stmt.kind == Stmt::Kind::kBarrier || stmt.kind == Stmt::Kind::kCommitCopies ||
      stmt.kind == Stmt::Kind::kWaitForCopies) {
    descriptions.insert("");
  }
  if (stmt.kind == Stmt::Kind::kStore) descriptions.insert(DescribeStore(program, stmt, names));
  for (const StmtId child : stmt.children) CollectStores(program, child, names, descriptions);
}

// Returns the name of the loop that was split: "i" for its part "i_2".
std::string FamilyOf(const std::string& name) {
  size_t end = name.size();
  while (end > 0 && absl::ascii_isdigit(static_cast<uint8_t>(name[end - 1]))) --end;
  return end > 1 && end < name.size() && name[end - 1] == '_' ? FamilyOf(name.substr(0, end - 1))
                                                              : name;
}

// The loops that one loop was split into, outermost first.
struct Tiling {
  std::string name;
  std::vector<std::pair<int64_t, std::string>> parts;  // extent, and the name of the loop or axis
};

class TilingFinder {
 public:
  explicit TilingFinder(const LoweredProgram& program) : p_(program), axes_(program.atoms.size()) {}

  std::vector<Tiling> Find(StmtId body) {
    Visit(body);
    if (result_ != nullptr) AddDimensions();
    reductions_.insert(reductions_.begin(), dimensions_.begin(), dimensions_.end());
    std::erase_if(reductions_, [](const Tiling& tiling) { return tiling.parts.size() < 2; });
    return reductions_;
  }

 private:
  void Visit(StmtId id) {
    if (id == lower::kNoStmt) return;
    const Stmt& stmt = p_.stmts[id];
    if (stmt.kind == Stmt::Kind::kFor) axes_[stmt.var] = AxisName(stmt.axis);
    if (stmt.kind == Stmt::Kind::kFor && stmt.loop != ir::LoopKind::kBound) loops_.push_back(&stmt);
    if (stmt.kind == Stmt::Kind::kStore) {
      const Storage::Kind kind = p_.storage[stmt.outputs[0]].kind;
      const bool is_result = kind == Storage::Kind::kArgument || kind == Storage::Kind::kWorkspace;
      if (is_result) result_ = &stmt;
      AddReduction(stmt);
    }
    for (const StmtId child : stmt.children) Visit(child);
    if (stmt.kind == Stmt::Kind::kFor && stmt.loop != ir::LoopKind::kBound) loops_.pop_back();
  }

  // Adds the loops over which a store reduces.
  void AddReduction(const Stmt& store) {
    for (const Stmt* const loop : loops_) {
      if (std::ranges::find(store.reduce_vars, loop->var) == store.reduce_vars.end()) continue;
      const std::string& name = p_.atoms[loop->var].name;
      const std::string base = FamilyOf(name);
      auto tiling = std::ranges::find(reductions_, base, &Tiling::name);
      if (tiling == reductions_.end()) tiling = reductions_.insert(tiling, {base, {}});
      if (std::ranges::find(tiling->parts, name, &std::pair<int64_t, std::string>::second) ==
          tiling->parts.end()) {
        tiling->parts.emplace_back(loop->extent, name);
      }
    }
  }

  // Adds the loops into which each dimension of the kernel's result is split.
  void AddDimensions() {
    const BufferId output = result_->outputs[0];
    const ir::Shape strides = StridesOf(p_, output);
    ir::Index::Terms terms = result_->indices[0].terms();
    std::ranges::sort(terms, std::ranges::greater(), &ir::IndexTerm::coeff);
    for (size_t d = 0; d < strides.size(); ++d) {
      dimensions_.push_back({absl::StrCat("Dimension ", d, " of ", p_.buffers[output].name), {}});
    }
    for (const ir::IndexTerm& term : terms) {
      size_t d = 0;
      while (d < strides.size() && (strides[d] > term.coeff || term.coeff % strides[d] != 0)) ++d;
      const ir::Atom& atom = p_.atoms[term.atom];
      if (d == strides.size() || atom.kind != ir::Atom::Kind::kVar) return dimensions_.clear();
      const std::string& axis = axes_[term.atom];
      dimensions_[d].parts.emplace_back(atom.range.extent(),
                                        axis.empty() ? LoopName(atom.name) : axis);
    }
  }

  const LoweredProgram& p_;
  std::vector<std::string> axes_;  // by variable
  std::vector<const Stmt*> loops_;
  const Stmt* result_ = nullptr;
  std::vector<Tiling> reductions_, dimensions_;
};

}  // namespace

std::string AxisName(ir::ThreadAxis axis) {
  switch (axis) {
    case ir::ThreadAxis::kBlockX:
      return "bx";
    case ir::ThreadAxis::kBlockY:
      return "by";
    case ir::ThreadAxis::kBlockZ:
      return "bz";
    case ir::ThreadAxis::kThreadX:
      return "tx";
    case ir::ThreadAxis::kThreadY:
      return "ty";
    case ir::ThreadAxis::kThreadZ:
      return "tz";
    case ir::ThreadAxis::kNone:
    case ir::ThreadAxis::kVThread:
      return "";
  }
  return "";
}

std::string DescribeNest(const LoweredProgram& program, StmtId stmt,
                         const std::vector<std::string>& names) {
  std::set<std::string> descriptions;
  CollectStores(program, stmt, names, descriptions);
  return descriptions.size() == 1 ? *descriptions.begin() : "";
}

std::vector<std::string> DescribeKernel(const LoweredProgram& program,
                                        const lower::LoweredKernel& kernel) {
  std::vector<std::string> lines;
  const auto sizes = [](const std::array<int64_t, 3>& xyz) {
    std::string text = absl::StrCat(xyz[0]);
    if (xyz[1] > 1 || xyz[2] > 1) absl::StrAppend(&text, " x ", xyz[1]);
    if (xyz[2] > 1) absl::StrAppend(&text, " x ", xyz[2]);
    return text;
  };
  lines.push_back(absl::StrCat(
      sizes(kernel.grid), kernel.grid == std::array<int64_t, 3>{1, 1, 1} ? " block" : " blocks",
      " of ", sizes(kernel.block),
      kernel.block == std::array<int64_t, 3>{1, 1, 1} ? " thread" : " threads",
      kernel.shared_bytes == 0 ? ""
                               : absl::StrCat(", ", kernel.shared_bytes, " bytes of shared memory"),
      "."));
  for (const Tiling& tiling : TilingFinder(program).Find(kernel.body)) {
    lines.push_back(
        absl::StrCat(tiling.name, ": ",
                     absl::StrJoin(tiling.parts, " x ", [](std::string* out, const auto& part) {
                       absl::StrAppend(out, part.first, " (", part.second, ")");
                     })));
  }
  return lines;
}

std::string LoopName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  const auto is_dimension = [](absl::string_view part) {
    return part.size() > 1 && part[0] == 'a' && absl::ascii_isdigit(static_cast<uint8_t>(part[1]));
  };
  std::vector<absl::string_view> kept;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 == parts.size() || !is_dimension(parts[i + 1])) kept.push_back(parts[i]);
  }
  return absl::StrJoin(kept, "_");
}

}  // namespace hone::codegen
