#ifndef HONE_TESTS_WORKER_COMPILE_EVERY_OPERATION_H_
#define HONE_TESTS_WORKER_COMPILE_EVERY_OPERATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ir/dtype.h"

namespace hone::codegen {

inline constexpr ir::DType kEveryDType[] = {ir::DType::kF16,    ir::DType::kBF16,  ir::DType::kF32,
                                            ir::DType::kF64,    ir::DType::kI8,    ir::DType::kU8,
                                            ir::DType::kI32,    ir::DType::kI64,   ir::DType::kBool,
                                            ir::DType::kF8E4M3, ir::DType::kF8E5M2};

// A workload with inputs A and B of a dtype, and an output for each operation and conversion that
// the dtype has.
struct OperationWorkload {
  struct Output {
    std::string name, value;
    bool rounds;  // results are approximate, and may differ from the interpreter's
  };
  std::string text;
  std::vector<Output> outputs;
};
OperationWorkload EveryOperation(ir::DType dtype, int64_t elements);

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_EVERY_OPERATION_H_
