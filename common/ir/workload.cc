#include "common/ir/workload.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/ir/arithmetic.h"
#include "common/ir/cases.h"
#include "common/ir/expr.h"
#include "common/ir/workload_parser.h"

namespace hone::ir {
namespace {

int Depth(const ExprPool& pool, ExprId id) {
  const Expr& expr = pool[id];
  int depth = 0;
  for (const ExprId operand : {expr.a, expr.b, expr.c}) {
    if (operand != kNoExpr) depth = std::max(depth, Depth(pool, operand));
  }
  return depth + 1;
}

// Encodes an index. Variables are numbered by their position in the stage.
void AddIndex(DigestBuilder& builder, const AtomTable& atoms, const Index& index,
              const std::vector<AtomId>& vars) {
  builder.Add(index.constant()).Add(static_cast<int64_t>(index.terms().size()));
  // Terms are sorted by atom ID, which depends on the order of declaration, so sort them by their
  // encoding instead.
  std::vector<Digest> terms;
  for (const IndexTerm& term : index.terms()) {
    const Atom& atom = atoms[term.atom];
    DigestBuilder t;
    t.Add(term.coeff).Add(static_cast<int64_t>(atom.kind));
    if (atom.kind == Atom::Kind::kVar) {
      t.Add(static_cast<int64_t>(absl::c_find(vars, term.atom) - vars.begin()));
    } else {
      t.Add(atom.divisor);
      AddIndex(t, atoms, atom.argument, vars);
    }
    terms.push_back(t.Finish());
  }
  absl::c_sort(terms);
  for (const Digest& term : terms) builder.Add(term);
}

void AddExpr(DigestBuilder& builder, const Workload& workload, ExprId id,
             const std::vector<AtomId>& vars) {
  const Expr& expr = workload.pool[id];
  builder.Add(absl::string_view(InfoOf(expr.op).name)).Add(static_cast<int64_t>(expr.dtype));
  if (expr.op == Op::kConst) AddTo(builder, expr.value);
  if (expr.op == Op::kLoad) builder.Add(static_cast<int64_t>(expr.buffer));
  if (expr.indices >= 0) {
    for (const Index& index : workload.pool.IndicesOf(expr))
      AddIndex(builder, workload.atoms, index, vars);
  }
  if (expr.gathered >= 0) builder.Add(static_cast<int64_t>(expr.gathered));
  for (const ExprId operand : {expr.a, expr.b, expr.c}) {
    if (operand != kNoExpr) AddExpr(builder, workload, operand, vars);
  }
}

// Checks that a stage reads only tensors above it, inside their shapes where the guards hold.
absl::Status CheckLoads(const Workload& workload, size_t s, const ExprPool& pool,
                        absl::Span<const ExprId> of, absl::Span<const Condition> guards) {
  const std::vector<Tensor>& tensors = workload.tensors;
  const AtomTable& atoms = workload.atoms;
  const Stage& stage = workload.stages[s];
  const std::string& stage_name = tensors[stage.tensors[0]].name;
  IndexValues values(atoms);
  for (const Condition& guard : guards) values.Add(guard.index, {0, guard.extent - 1});
  absl::Status status;
  const auto check = [&](const Expr& load) {
    if (!status.ok()) return;
    const Tensor& tensor = tensors[load.buffer];
    const IndexList& indices = pool.IndicesOf(load);
    if (!tensor.input && tensor.stage >= static_cast<int>(s)) {
      status = absl::InvalidArgumentError(absl::StrCat("stage ", stage_name, " reads ", tensor.name,
                                                       ", which is not computed before it"));
    } else if (indices.size() != tensor.shape.size()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("stage ", stage_name, " reads ", tensor.name, " with ", indices.size(),
                       " indices; its type is ", TypeText(tensor.dtype, tensor.shape)));
    }
    for (size_t d = 0; status.ok() && d < indices.size(); ++d) {
      const Range range = values.RangeOf(indices[d]);
      const bool is_never_read = range.min > range.max;
      if (is_never_read || (range.min >= 0 && range.max < tensor.shape[d])) continue;
      const std::string guard =
          absl::StrCat("0 <= ", atoms.ToString(indices[d]), " < ", tensor.shape[d]);
      status = absl::InvalidArgumentError(absl::StrCat(
          "stage ", stage_name, ": index ", d, " of ", tensor.name, PrintIndices(atoms, indices),
          " runs from ", range.min, " to ", range.max, ", but the extent is ", tensor.shape[d],
          stage.reducer == Reducer::kNone
              ? absl::StrCat("; guard the value, as in (… where ", guard, " else 0)")
              : absl::StrCat("; check the order of the indices, or add a guard to the reduction (… "
                             "where ",
                             guard, ")")));
    }
  };
  for (const ExprId value : of) pool.VisitLoads(value, check);
  return status;
}

absl::Status CheckGathers(const Workload& workload, const Stage& stage) {
  absl::Status status;
  const auto check = [&](const Expr& load) {
    const Tensor& tensor = workload.tensors[load.buffer];
    if (load.gathered < 0) return;
    int64_t row = 1;  // elements from one computed index to the next
    for (size_t d = load.gathered + 1; d < tensor.shape.size(); ++d) row *= tensor.shape[d];
    if (IsPacked(tensor.dtype) && row % 2 != 0) {
      status = absl::InvalidArgumentError(absl::StrCat(
          "stage ", workload.tensors[stage.tensors[0]].name, " reads rows of ", row,
          " elements of ", tensor.name, " at computed indices; two elements of ",
          DTypeName(tensor.dtype), " share a byte, so rows must have an even number of elements"));
    }
    if (tensor.input) return;
    status = absl::InvalidArgumentError(
        absl::StrCat("stage ", workload.tensors[stage.tensors[0]].name, " reads ", tensor.name,
                     " at computed indices, which only inputs allow; make ", tensor.name,
                     " an input, and compute it in another workload"));
  };
  for (const ExprId value : stage.values) workload.pool.VisitLoads(value, check);
  return status;
}

bool Reads(const ExprPool& pool, ExprId id) {
  bool reads = false;
  pool.VisitLoads(id, [&](const Expr&) { reads = true; });
  return reads;
}

// Number of arithmetic operations in one evaluation. A choice counts its more expensive branch. A
// choice that depends only on indices costs nothing, because the loops decide it.
double Operations(const ExprPool& pool, ExprId id) {
  const Expr& expr = pool[id];
  if (expr.op == Op::kSelect) {
    const double branch = std::max(Operations(pool, expr.b), Operations(pool, expr.c));
    return branch + (Reads(pool, expr.a) ? 1 + Operations(pool, expr.a) : 0);
  }
  if (expr.op == Op::kWhere) return std::max(Operations(pool, expr.a), Operations(pool, expr.b));
  double operations = expr.op != Op::kConst && expr.op != Op::kIndex && expr.op != Op::kLoad &&
                      expr.op != Op::kCast;
  for (const ExprId operand : {expr.a, expr.b, expr.c}) {
    if (operand != kNoExpr) operations += Operations(pool, operand);
  }
  return operations;
}

// Counts the points in the domain of `vars` where all guards hold: enumerates all variables but one
// and counts an interval of that one. Returns -1 if that takes more than `budget` points. The
// points used are subtracted from it.
double CountGroup(const AtomTable& atoms, const std::vector<const Condition*>& guards,
                  std::vector<AtomId> vars, const std::map<AtomId, int64_t>& extents,
                  int64_t& budget) {
  const auto linear = [&](AtomId var) {
    return absl::c_all_of(guards, [&](const Condition* guard) {
      return !atoms.DependsOn(guard->index - Index::Of(var, guard->index.CoeffOf(var)), var);
    });
  };
  AtomId along = kNoAtom;
  for (AtomId var : vars) {
    if (linear(var) && (along == kNoAtom || extents.at(var) > extents.at(along))) along = var;
  }
  if (along != kNoAtom) vars.erase(absl::c_find(vars, along));
  double points = 1;
  for (AtomId var : vars) points *= static_cast<double>(extents.at(var));
  if (points > static_cast<double>(budget)) return -1;
  budget -= static_cast<int64_t>(points);

  std::vector<int64_t> values(atoms.size(), 0);
  double holds = 0;
  for (int64_t point = 0; point < static_cast<int64_t>(points); ++point) {
    int64_t rest = point;
    for (AtomId var : vars) {
      values[var] = rest % extents.at(var);
      rest /= extents.at(var);
    }
    int64_t low = 0, high = along == kNoAtom ? 0 : extents.at(along) - 1;
    for (const Condition* guard : guards) {
      const int64_t base = atoms.Evaluate(guard->index, values);
      int64_t coeff = along == kNoAtom ? 0 : guard->index.CoeffOf(along);
      int64_t least = -base, most = guard->extent - 1 - base;  // of coeff·along
      if (coeff < 0) {
        coeff = -coeff;
        std::swap(least, most);
        least = -least;
        most = -most;
      }
      if (coeff == 0) {
        if (least > 0 || most < 0) high = low - 1;
      } else {
        low = std::max(low, CeilDivInt(least, coeff));
        high = std::min(high, FloorDivInt(most, coeff));
      }
    }
    holds += static_cast<double>(std::max<int64_t>(0, high - low + 1));
  }
  return holds;
}

// `budget` is the number of points that may be enumerated. The points used are subtracted from it.
double GuardedPointsWithin(const AtomTable& atoms, const Stage& stage, int64_t& budget) {
  // Axes that share a guard form a group that is counted together; the groups' counts multiply.
  std::map<AtomId, int64_t> extents;
  for (const auto* axes : {&stage.spatial, &stage.reduce}) {
    for (const Axis& axis : *axes) extents[axis.var] = axis.extent;
  }
  std::map<AtomId, AtomId> parent;
  for (const auto& [var, extent] : extents) parent[var] = var;
  const auto root = [&](AtomId var) {
    while (parent[var] != var) var = parent[var];
    return var;
  };
  std::map<const Condition*, AtomId> variable;  // one variable per guard
  for (const Condition& guard : stage.guards) {
    if (guard.index.IsConstant()) {
      if (guard.index.constant() < 0 || guard.index.constant() >= guard.extent) return 0;
      continue;
    }
    atoms.VisitVars(guard.index, [&](AtomId var) {
      const AtomId first = variable.emplace(&guard, var).first->second;
      parent[root(var)] = root(first);
    });
  }
  double points = 1;
  for (const auto& [group, unused] : extents) {
    if (root(group) != group) continue;
    std::vector<AtomId> vars;
    double total = 1;
    for (const auto& [var, extent] : extents) {
      if (root(var) != group) continue;
      vars.push_back(var);
      total *= static_cast<double>(extent);
    }
    std::vector<const Condition*> guards;
    for (const auto& [guard, var] : variable) {
      if (root(var) == group) guards.push_back(guard);
    }
    // For a group too large to count, assume that its guards always hold: an upper bound.
    const double holds =
        guards.empty() ? -1 : CountGroup(atoms, guards, std::move(vars), extents, budget);
    points *= holds < 0 ? total : holds;
  }
  return points;
}

// About 10 ms.
constexpr int64_t kCountingBudget = 100'000;

double StageFlops(const Workload& workload, const Stage& stage, int64_t& budget) {
  double per_point = stage.reducer == Reducer::kNone ? 0 : ReducerArity(stage.reducer);
  for (ExprId value : stage.values) per_point += Operations(workload.pool, value);
  return per_point * GuardedPointsWithin(workload.atoms, stage, budget);
}

}  // namespace

int64_t ElementsOf(const Shape& shape) {
  return absl::c_accumulate(shape, int64_t{1}, std::multiplies<>());
}

std::string TypeText(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), "[", absl::StrJoin(shape, ", "), "]");
}

std::vector<BufferId> Workload::Inputs() const {
  std::vector<BufferId> ids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].input) ids.push_back(static_cast<BufferId>(i));
  }
  return ids;
}

std::vector<BufferId> Workload::Outputs() const {
  std::vector<BufferId> ids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].output) ids.push_back(static_cast<BufferId>(i));
  }
  return ids;
}

absl::Status ValidateTensor(const Tensor& tensor) {
  if (tensor.shape.empty() || tensor.shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has rank ",
                                                   tensor.shape.size(), "; 1 to ", kMaxRank,
                                                   " are supported"));
  }
  int64_t elements = 1;
  for (int64_t extent : tensor.shape) {
    if (extent <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", tensor.name, " has extent ", extent, "; extents are at least 1"));
    }
    if (extent > kMaxElements / elements) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": ",
                                                     TypeText(tensor.dtype, tensor.shape),
                                                     " has more than ", kMaxElements, " elements"));
    }
    elements *= extent;
  }
  if (tensor.bound == 0) return absl::OkStatus();
  const bool is_whole = !IsFloat(tensor.dtype) && tensor.dtype != DType::kBool;
  if (!is_whole || tensor.bound < 0 || CastTo(tensor.dtype, tensor.bound - 1) != tensor.bound - 1) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": ", tensor.bound,
                                                   " is not a bound of ", DTypeName(tensor.dtype)));
  }
  return absl::OkStatus();
}

absl::Status Workload::Validate(int max_depth, size_t max_tensors) const {
  if (stages.empty())
    return absl::InvalidArgumentError(absl::StrCat("workload ", name, " has no stage"));
  if (tensors.size() > max_tensors) {
    return absl::InvalidArgumentError(
        absl::StrCat("workload ", name, " has more than ", max_tensors, " tensors"));
  }
  if (Outputs().empty())
    return absl::InvalidArgumentError(absl::StrCat("workload ", name, " has no output"));
  for (const Tensor& tensor : tensors) {
    if (tensor.input) HONE_RETURN_IF_ERROR(ValidateTensor(tensor));
  }
  for (size_t s = 0; s < stages.size(); ++s) HONE_RETURN_IF_ERROR(ValidateStage(s, max_depth));
  return absl::OkStatus();
}

absl::Status Workload::ValidateStage(size_t s, int max_depth) const {
  const Stage& stage = stages[s];
  const std::string& stage_name = tensors[stage.tensors[0]].name;
  for (BufferId tensor : stage.tensors) HONE_RETURN_IF_ERROR(ValidateTensor(tensors[tensor]));
  if (stage.guards.size() > kMaxGuards) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", stage_name, " has more than ", kMaxGuards, " guards"));
  }
  if (stage.values.size() != stage.tensors.size() ||
      stage.tensors.size() != static_cast<size_t>(ReducerArity(stage.reducer))) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage_name, " needs ",
                                                   ReducerArity(stage.reducer),
                                                   " components, but has ", stage.values.size()));
  }
  if ((stage.reducer == Reducer::kNone) != stage.reduce.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage_name, " reduces over no axis"));
  }
  if (stage.reducer == Reducer::kNone && !stage.guards.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", stage_name, " has a guard but no reduction"));
  }
  double domain = 1;
  for (const auto* axes : {&stage.spatial, &stage.reduce}) {
    for (const Axis& axis : *axes) {
      if (axis.extent <= 0) {
        return absl::InvalidArgumentError(absl::StrCat("axis ", atoms[axis.var].name, " of stage ",
                                                       stage_name, " has extent ", axis.extent,
                                                       "; extents are at least 1"));
      }
      domain *= static_cast<double>(axis.extent);
    }
  }
  if (domain > static_cast<double>(kMaxDomain)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", stage_name, " has ", domain, " points; at most ", kMaxDomain, " are supported"));
  }
  for (size_t c = 0; c < stage.values.size(); ++c) {
    if (Depth(pool, stage.values[c]) > max_depth) {
      return absl::InvalidArgumentError(
          absl::StrCat("the expression of ", stage_name, " is nested deeper than ", max_depth));
    }
    if (pool[stage.values[c]].dtype != tensors[stage.tensors[c]].dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage_name, " computes ", DTypeName(pool[stage.values[c]].dtype),
                       " but its tensor is ", DTypeName(tensors[stage.tensors[c]].dtype)));
    }
  }
  HONE_RETURN_IF_ERROR(CheckGathers(*this, stage));
  if (!HasGuardedValue(pool, stage.values))
    return CheckLoads(*this, s, pool, stage.values, stage.guards);
  if (stage.reducer != Reducer::kNone) {
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage_name,
                                                   " reduces a guarded value; guard the reduction "
                                                   "instead (sum(k: 8 where 0 <= k - 1 < 6)), or "
                                                   "compute the value in an earlier stage"));
  }
  ExprPool of_cases = pool;
  const auto cases = CasesOf(of_cases, atoms, stage.values);
  if (!cases.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the guarded values of stage ", stage_name, " have more than ", kMaxCases,
                     " cases; compute some of them in an earlier stage"));
  }
  for (const Case& at : *cases) {
    HONE_RETURN_IF_ERROR(CheckLoads(*this, s, of_cases, at.values, at.conditions));
  }
  return absl::OkStatus();
}

Digest Workload::StructuralDigest() const {
  DigestBuilder builder;
  builder.Add(absl::string_view("hone.workload.1")).Add(static_cast<int64_t>(tensors.size()));
  for (const Tensor& tensor : tensors) {
    builder.Add(static_cast<int64_t>(tensor.dtype)).Add(static_cast<int64_t>(tensor.shape.size()));
    for (int64_t extent : tensor.shape) builder.Add(extent);
    builder.Add(
        static_cast<int64_t>(tensor.input << 2 | tensor.constant << 1 | int{tensor.output}));
    if (tensor.bound > 0) builder.Add(absl::string_view("bound")).Add(tensor.bound);
  }
  for (const Stage& stage : stages) {
    std::vector<AtomId> vars;
    builder.Add(absl::string_view(ReducerName(stage.reducer)));
    for (const auto* axes : {&stage.spatial, &stage.reduce}) {
      builder.Add(static_cast<int64_t>(axes->size()));
      for (const Axis& axis : *axes) {
        builder.Add(axis.extent);
        vars.push_back(axis.var);
      }
    }
    builder.Add(static_cast<int64_t>(stage.guards.size()));
    for (const Condition& guard : stage.guards) {
      AddIndex(builder, atoms, guard.index, vars);
      builder.Add(guard.extent);
    }
    for (size_t c = 0; c < stage.values.size(); ++c) {
      builder.Add(static_cast<int64_t>(stage.tensors[c]));
      AddExpr(builder, *this, stage.values[c], vars);
    }
  }
  return builder.Finish();
}

std::string Workload::ToText() const {
  std::string text = absl::StrCat("workload ", name, "\n");
  const auto tensor_name = [&](BufferId id) { return tensors[id].name; };
  const auto axes_text = [&](const std::vector<Axis>& axes) {
    return absl::StrJoin(axes, ", ", [&](std::string* out, const Axis& axis) {
      absl::StrAppend(out, atoms[axis.var].name, ": ", axis.extent);
    });
  };
  for (const Tensor& tensor : tensors) {
    if (!tensor.input) continue;
    absl::StrAppend(&text, "input ", tensor.name, ": ", TypeText(tensor.dtype, tensor.shape),
                    tensor.bound > 0 ? absl::StrCat(" < ", tensor.bound) : "",
                    tensor.constant ? " constant" : "", "\n");
  }
  for (const Stage& stage : stages) {
    if (tensors[stage.tensors[0]].output) text += "output ";
    const bool tuple = stage.tensors.size() > 1;
    const auto list = [&](absl::string_view open, const auto& items, auto&& item_text,
                          absl::string_view close) {
      std::string joined = tuple ? std::string(open) : "";
      for (size_t i = 0; i < items.size(); ++i)
        absl::StrAppend(&joined, i ? ", " : "", item_text(items[i]));
      return tuple ? joined + std::string(close) : joined;
    };
    absl::StrAppend(&text, list("(", stage.tensors, tensor_name, ")"), "[",
                    axes_text(stage.spatial), "] = ");
    if (stage.reducer != Reducer::kNone) {
      absl::StrAppend(&text, ReducerName(stage.reducer), "(", axes_text(stage.reduce));
      for (size_t g = 0; g < stage.guards.size(); ++g) {
        absl::StrAppend(&text, g ? ", " : " where ", "0 <= ", atoms.ToString(stage.guards[g].index),
                        " < ", stage.guards[g].extent);
      }
      text += ") ";
    }
    absl::StrAppend(
        &text,
        list(
            "(", stage.values,
            [&](ExprId value) { return PrintExpr(pool, atoms, value, tensor_name); }, ")"),
        "\n");
  }
  return text;
}

BufferId WorkloadBuilder::Input(std::string name, DType dtype, Shape shape, bool constant) {
  workload_.tensors.push_back({.name = std::move(name),
                               .dtype = dtype,
                               .shape = std::move(shape),
                               .input = true,
                               .constant = constant});
  return static_cast<BufferId>(workload_.tensors.size()) - 1;
}

Axis WorkloadBuilder::NewAxis(std::string name, int64_t extent) {
  return {workload_.atoms.AddVar(std::move(name), extent), extent};
}

ExprId WorkloadBuilder::Load(BufferId tensor, IndexList indices) {
  return workload_.pool.Load(tensor, workload_.tensors[tensor].dtype, std::move(indices));
}

BufferId WorkloadBuilder::Stage(std::string name, std::vector<Axis> spatial, Reducer reducer,
                                std::vector<Axis> reduce, std::vector<Condition> guards,
                                ExprId value) {
  const auto id = static_cast<BufferId>(workload_.tensors.size());
  Shape shape;
  for (const Axis& axis : spatial) shape.push_back(axis.extent);
  workload_.tensors.push_back({.name = std::move(name),
                               .dtype = workload_.pool[value].dtype,
                               .shape = std::move(shape),
                               .stage = static_cast<int>(workload_.stages.size())});
  workload_.stages.push_back({.tensors = {id},
                              .spatial = std::move(spatial),
                              .reduce = std::move(reduce),
                              .guards = std::move(guards),
                              .reducer = reducer,
                              .values = {value}});
  return id;
}

absl::StatusOr<Workload> WorkloadBuilder::Build() && {
  HONE_RETURN_IF_ERROR(workload_.Validate());
  return std::move(workload_);
}

std::string TypesOf(const Workload& workload, const std::vector<BufferId>& ids) {
  return absl::StrJoin(ids, ", ", [&](std::string* out, BufferId id) {
    out->append(TypeText(workload.tensors[id].dtype, workload.tensors[id].shape));
  });
}

std::string SignatureText(const Workload& workload) {
  return absl::StrCat(workload.name, "(", TypesOf(workload, workload.Inputs()), ") -> ",
                      TypesOf(workload, workload.Outputs()));
}

std::string SignatureOfText(const std::string& text) {
  const absl::StatusOr<Workload> workload = ParseWorkload(text);
  return workload.ok() ? SignatureText(*workload) : text.substr(0, text.find('\n'));
}

double GuardedPoints(const AtomTable& atoms, const Stage& stage) {
  int64_t budget = kCountingBudget;
  return GuardedPointsWithin(atoms, stage, budget);
}

double FlopCount(const Workload& workload) {
  double total = 0;
  // One budget for all stages, so that workloads with many stages stay fast.
  int64_t budget = kCountingBudget;
  for (const Stage& stage : workload.stages) total += StageFlops(workload, stage, budget);
  return total;
}

}  // namespace hone::ir
