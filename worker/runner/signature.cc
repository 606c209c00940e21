#include "worker/runner/signature.h"

#include <algorithm>

#include "common/ir/error_bound.h"

namespace hone::runner {

Signature SignatureOf(const ir::Workload& workload) {
  Signature signature;
  const auto spec = [&](ir::BufferId id) {
    const ir::Tensor& tensor = workload.tensors[id];
    return TensorSpec{tensor.name, tensor.dtype, ir::ElementsOf(tensor.shape)};
  };
  for (const ir::BufferId id : workload.Inputs()) signature.inputs.push_back(spec(id));
  for (const ir::BufferId id : workload.Outputs()) signature.outputs.push_back(spec(id));
  // Errors of consecutive reductions add up; the sum over all stages bounds every chain.
  double terms = 0;
  for (const ir::Stage& stage : workload.stages) {
    double points = 1;
    for (const ir::Axis& axis : stage.reduce) points *= static_cast<double>(axis.extent);
    // Relative errors of the factors of a product add up.
    const bool product = stage.reducer == ir::Reducer::kProd;
    terms = product ? (terms + 1) * points * points : terms + points;
    for (const ir::BufferId id : stage.tensors) {
      const ir::DType dtype = ir::AccumulatorOf(workload.tensors[id].dtype);
      signature.roundoff = std::max(signature.roundoff, ir::UnitRoundoff(dtype));
    }
    for (const ir::ExprId value : stage.values) {
      workload.pool.Visit(value, [&](const ir::Expr& expr) {
        const bool arithmetic = expr.op >= ir::Op::kAdd && ir::IsFloat(expr.dtype);
        if (arithmetic) {
          const double unit = ir::UnitRoundoff(ir::AccumulatorOf(expr.dtype));
          signature.roundoff = std::max(signature.roundoff, unit);
        }
        if (expr.op == ir::Op::kCast) {
          const double cast = ir::CastRounding(workload.pool[expr.a].dtype, expr.dtype);
          signature.rounding = std::max(signature.rounding, cast / 2);
        }
        const bool computed = expr.op == ir::Op::kLoad && !workload.tensors[expr.buffer].input;
        if (computed && ir::AccumulatorOf(expr.dtype) != expr.dtype) {
          signature.rounding = std::max(signature.rounding, ir::UnitRoundoff(expr.dtype));
        }
      });
    }
  }
  signature.terms = std::max(terms, 1.0);
  return signature;
}

}  // namespace hone::runner
