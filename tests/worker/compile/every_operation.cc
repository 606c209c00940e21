#include "tests/worker/compile/every_operation.h"

#include "absl/strings/str_cat.h"
#include "common/ir/vocabulary.h"
#include "common/ir/workload_parser.h"

namespace hone::codegen {
namespace {

std::string CallOf(const ir::Function& function) {
  const ir::OpInfo& info = ir::InfoOf(function.op);
  if (info.infix) return absl::StrCat("A[i] ", info.name, " B[i]");
  if (function.op == ir::Op::kSelect) return "select(A[i] == B[i], A[i], B[i])";
  if (function.op == ir::Op::kNeg) return "-A[i]";
  return absl::StrCat(info.name, "(A[i]", info.operands > 1 ? ", B[i])" : ")");
}

// Whether results are approximate, so that they may differ from the interpreter's.
bool Rounds(ir::Op op) {
  switch (op) {
    case ir::Op::kExp:
    case ir::Op::kLog:
    case ir::Op::kSqrt:
    case ir::Op::kRsqrt:
    case ir::Op::kTanh:
    case ir::Op::kErf:
    case ir::Op::kSigmoid:
    case ir::Op::kNormalCdf:
    case ir::Op::kPow:
      return true;
    default:
      return false;
  }
}

}  // namespace

OperationWorkload EveryOperation(ir::DType dtype, int64_t elements) {
  const absl::string_view name = ir::DTypeName(dtype);
  OperationWorkload all;
  all.text = absl::StrCat("workload operations\ninput A: ", name, "[", elements,
                          "]\ninput B: ", name, "[", elements, "]\n");
  const auto add = [&](const std::string& value, bool rounds) {
    const std::string output = absl::StrCat("R", all.outputs.size());
    const std::string line = absl::StrCat("output ", output, "[i: ", elements, "] = ", value, "\n");
    // Not every dtype has every operation.
    if (!ir::ParseWorkload(absl::StrCat(all.text, line)).ok()) return;
    all.text += line;
    all.outputs.push_back({output, value, rounds});
  };
  for (const ir::Function& function : ir::Functions()) add(CallOf(function), Rounds(function.op));
  for (const ir::DType to : kEveryDType) add(absl::StrCat(ir::DTypeName(to), "(A[i])"), false);
  for (const char* const value :
       {"A[i] / 7", "(A[i] << 3) >> 2", "(A[i] >> 100) - (A[i] << 100)", "-(A[i] - B[i])",
        "A[i] < B[i] and not (B[i] < 3) or A[i] == B[i]", "not (A[i] == B[i]) == (A[i] < B[i])",
        "i32(A[i] < B[i]) + i32(index(i))", "index(i) * 3 - 5", "-(-A[i])"}) {
    add(value, false);
  }
  if (!ir::IsFloat(dtype)) add("A[i] - (B[i] - A[i]) * (A[i] + B[i])", false);
  // A conversion must round to its type even if the result is not stored.
  for (const ir::DType to : kEveryDType) {
    add(absl::StrCat("f64(", ir::DTypeName(to), "(A[i])) * 2.0"), false);
  }
  return all;
}

}  // namespace hone::codegen
