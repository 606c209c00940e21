#include "worker/runner/signature.h"

#include <algorithm>

#include "common/ir/error_bound.h"

namespace hone::runner {

Signature SignatureOf(const ir::Workload& workload, ir::ErrorOfOp error_of) {
  Signature signature;
  const auto spec = [&](ir::BufferId id) {
    const ir::Tensor& tensor = workload.tensors[id];
    return TensorSpec{tensor.name, tensor.dtype, ir::ElementsOf(tensor.shape), tensor.bound};
  };
  const std::vector<InputRange> ranges = ChooseInputRanges(workload);
  for (const ir::BufferId id : workload.Inputs()) {
    signature.inputs.push_back(spec(id));
    signature.inputs.back().range = ranges[signature.inputs.size() - 1];
  }
  for (const ir::BufferId id : workload.Outputs()) signature.outputs.push_back(spec(id));
  const ir::Accuracy accuracy(workload, error_of);
  signature.terms = accuracy.terms();
  signature.roundoff = accuracy.roundoff();
  signature.relative_error = accuracy.relative_error();
  signature.has_roundings = accuracy.rounds_on_the_way();
  signature.keeps_integers = accuracy.keeps_integers();
  const auto rounds_to = [&](ir::DType dtype) {
    signature.rounding = std::max(signature.rounding, ir::UnitRoundoff(dtype));
  };
  for (const ir::Stage& stage : workload.stages) {
    for (const ir::ExprId value : stage.values) {
      workload.pool.Visit(value, [&](const ir::Expr& expr) {
        if (expr.op == ir::Op::kCast && !ir::IsWidening(workload.pool[expr.a].dtype, expr.dtype)) {
          rounds_to(expr.dtype);
        }
        if (expr.op == ir::Op::kLoad && ir::StoresShort(workload.tensors[expr.buffer])) {
          rounds_to(expr.dtype);
        }
      });
    }
  }
  return signature;
}

}  // namespace hone::runner
