#include "server/task/least_operations.h"

#include <algorithm>
#include <set>

#include "common/ir/expr.h"

namespace hone::task {
namespace {

using ir::Expr;
using ir::ExprId;

constexpr double kStrassen = 0.5;

// The axes that the elements of a load depend on. Empty for what is no load, casts left aside.
std::set<ir::AtomId> AxesOfLoad(const ir::Workload& workload, ExprId id) {
  const Expr* expr = &workload.pool[id];
  while (expr->op == ir::Op::kCast) expr = &workload.pool[expr->a];
  std::set<ir::AtomId> axes;
  if (expr->op != ir::Op::kLoad) return axes;
  for (const ir::Index& index : workload.pool.IndicesOf(*expr)) {
    workload.atoms.VisitVars(index, [&](ir::AtomId var) { axes.insert(var); });
  }
  return axes;
}

// How many times as fast as in f32 a device multiplies what a load reads: dot products of bytes
// and of half-width floats.
double Speed(const ir::Workload& workload, ExprId id) {
  const Expr* expr = &workload.pool[id];
  while (expr->op == ir::Op::kCast) expr = &workload.pool[expr->a];
  return std::max(1.0, 4.0 / ir::DTypeBytes(expr->dtype));
}

double LeastOfStage(const ir::Workload& workload, const ir::Stage& stage, double tolerance) {
  double points = 1;
  for (const ir::Axis& axis : stage.spatial) points *= static_cast<double>(axis.extent);
  // What is no sum of products: a sum may be made of others' parts, so one operation per element.
  const double simple = std::min(workload.FlopCount(stage), points) / 4;
  if (stage.reducer != ir::Reducer::kSum) return simple;
  const Expr* product = &workload.pool[stage.values[0]];
  while (product->op == ir::Op::kCast) product = &workload.pool[product->a];
  if (product->op != ir::Op::kMul) return simple;
  const std::set<ir::AtomId> left = AxesOfLoad(workload, product->a);
  const std::set<ir::AtomId> right = AxesOfLoad(workload, product->b);
  double operations = 2 * ir::GuardedPoints(workload.atoms, stage);
  double windows = 1;  // the extents of the reduced axes but the largest
  double largest = 1;
  for (const ir::Axis& axis : stage.reduce) {
    // A factor that does not depend on the axis can be taken out of the sum over it.
    if (!left.contains(axis.var) || !right.contains(axis.var)) return simple;
    const double extent = static_cast<double>(axis.extent);
    windows *= std::min(largest, extent);
    largest = std::max(largest, extent);
  }
  for (const ir::Axis& axis : stage.spatial) {
    const bool used = left.contains(axis.var) || right.contains(axis.var);
    if (!used) operations /= static_cast<double>(axis.extent);
  }
  const auto buffer = [&](ExprId id) {
    const Expr* expr = &workload.pool[id];
    while (expr->op == ir::Op::kCast) expr = &workload.pool[expr->a];
    return expr->buffer;
  };
  // A matrix times its own transpose is symmetric.
  if (buffer(product->a) == buffer(product->b)) operations /= 2;
  operations /= std::min(Speed(workload, product->a), 4.0);
  if (tolerance > 0) operations *= kStrassen / windows;
  return operations;
}

}  // namespace

double LeastOperations(const ir::Workload& workload, double tolerance) {
  double least = 0;
  for (const ir::Stage& stage : workload.stages) {
    least += LeastOfStage(workload, stage, tolerance);
  }
  return least;
}

}  // namespace hone::task
