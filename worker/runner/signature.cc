#include "worker/runner/signature.h"

#include <algorithm>

namespace hone::runner {

double UnitRoundoff(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return 0x1p-11;
    case ir::DType::kBF16:
      return 0x1p-8;
    case ir::DType::kF32:
      return 0x1p-24;
    case ir::DType::kF64:
      return 0x1p-53;
    default:
      return 0;
  }
}

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
    terms += points;
    for (const ir::BufferId id : stage.tensors) {
      signature.roundoff = std::max(signature.roundoff, UnitRoundoff(workload.tensors[id].dtype));
    }
    for (const ir::ExprId value : stage.values) {
      workload.pool.Visit(value, [&](const ir::Expr& expr) {
        if (expr.op != ir::Op::kCast) return;
        signature.roundoff = std::max(signature.roundoff, UnitRoundoff(expr.dtype));
      });
    }
  }
  signature.terms = std::max(terms, 1.0);
  return signature;
}

}  // namespace hone::runner
