#include "worker/codegen/c/c_comments.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

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
  const std::string inputs = absl::StrJoin(from, " and ");
  if (store.reducer != ir::Reducer::kNone) {
    const ir::Expr& value = program.pool[store.values[0]];
    const bool is_sum = store.reducer == ir::Reducer::kSum;
    if (is_sum && value.op == ir::Op::kMul && from.size() == 2) {
      return absl::StrCat("Add products of ", inputs, " to ", to, ".");
    }
    return absl::StrCat("Reduce ", inputs, inputs.empty() ? "" : " ", "to ", to, " (",
                        ir::ReducerName(store.reducer), ").");
  }
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
  if (stmt.kind == Stmt::Kind::kBarrier) descriptions.insert("");
  if (stmt.kind == Stmt::Kind::kStore) descriptions.insert(DescribeStore(program, stmt, names));
  for (const StmtId child : stmt.children) CollectStores(program, child, names, descriptions);
}

// "i_2" → "i": split names the parts of a loop so.
std::string FamilyOf(const std::string& name) {
  size_t end = name.size();
  while (end > 0 && absl::ascii_isdigit(static_cast<uint8_t>(name[end - 1]))) --end;
  return end > 1 && end < name.size() && name[end - 1] == '_' ? FamilyOf(name.substr(0, end - 1))
                                                              : name;
}

struct Family {
  std::string name;
  std::set<std::string> members;
  std::vector<std::string> parts;
};

void CollectLoops(const LoweredProgram& program, StmtId id, std::vector<Family>& families) {
  if (id == lower::kNoStmt) return;
  const Stmt& stmt = program.stmts[id];
  if (stmt.kind == Stmt::Kind::kFor) {
    const std::string& name = program.atoms[stmt.var].name;
    const std::string base = FamilyOf(name);
    auto family = std::find_if(families.begin(), families.end(),
                               [&](const Family& known) { return known.name == base; });
    if (family == families.end()) family = families.insert(families.end(), {base, {}, {}});
    if (family->members.insert(name).second) {
      const std::string axis = AxisName(stmt.axis);
      family->parts.push_back(absl::StrCat(stmt.extent, " (", axis.empty() ? name : axis, ")"));
    }
  }
  for (const StmtId child : stmt.children) CollectLoops(program, child, families);
}

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
  std::vector<Family> families;
  CollectLoops(program, kernel.body, families);
  lines.push_back(absl::StrCat(
      sizes(kernel.grid), kernel.grid == std::array<int64_t, 3>{1, 1, 1} ? " block" : " blocks",
      " of ", sizes(kernel.block),
      kernel.block == std::array<int64_t, 3>{1, 1, 1} ? " thread" : " threads",
      kernel.shared_bytes == 0 ? ""
                               : absl::StrCat(", ", kernel.shared_bytes, " bytes of shared memory"),
      "."));
  for (const Family& family : families) {
    if (family.parts.size() < 2) continue;
    lines.push_back(absl::StrCat(family.name, ": ", absl::StrJoin(family.parts, " x ")));
  }
  return lines;
}

}  // namespace hone::codegen
