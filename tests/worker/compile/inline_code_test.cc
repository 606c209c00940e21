// No operation calls a function, as scalars or as vectors, on any CPU from AVX2 on: a call would
// spill every vector register, and a kernel would need a library.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/ir/vocabulary.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/worker/compile/run_trace.h"

namespace hone::codegen {
namespace {

std::vector<target::Target> Targets() {
  target::Target arm = Preset("x86-avx2");
  arm.arch = "aarch64";
  arm.triple = "aarch64-unknown-linux-gnu";
  arm.cpu = "cortex-a72";
  arm.vector_bits = 128;
  arm.features.clear();
  return {Preset("x86-avx2"), Preset("x86-avx512"), arm};
}

std::string Written(const ir::Function& function) {
  const ir::OpInfo& info = ir::InfoOf(function.op);
  if (info.infix) return absl::StrCat("A[i] ", info.name, " B[i]");
  if (function.op == ir::Op::kSelect) return "select(A[i] == B[i], A[i], B[i])";
  return absl::StrCat(info.name, "(A[i]", info.operands > 1 ? ", B[i])" : ")");
}

TEST(InlineCodeTest, NoOperationCallsAFunction) {
  for (const char* const dtype : {"f16", "bf16", "f32", "f64", "i8", "u8", "i32", "i64"}) {
    const std::string inputs =
        absl::StrCat("workload w\ninput A: ", dtype, "[4096]\ninput B: ", dtype, "[4096]\n");
    std::string text = inputs;
    std::vector<std::string> outputs;
    for (const ir::Function& function : ir::Functions()) {
      const std::string name = absl::StrCat("y", outputs.size());
      const std::string output =
          absl::StrCat("output ", name, "[i: 4096] = ", Written(function), "\n");
      if (!ir::ParseWorkload(inputs + output).ok()) continue;  // it does not take this dtype
      text += output;
      outputs.push_back(name);
    }
    EXPECT_GE(outputs.size(), 12u) << text;
    for (const target::Target& target : Targets()) {
      for (const int lanes : {1, 16}) {
        const auto assembly = AssemblyOf(target, WithVectors(text, outputs, lanes));
        ASSERT_THAT(assembly, IsOk()) << text << target.cpu;
        const size_t begin = assembly->find("hone_main:");
        ASSERT_NE(begin, std::string::npos) << *assembly;
        const std::string body =
            assembly->substr(begin, assembly->find(".Lfunc_end", begin) - begin);
        for (const char* const call : {"\tcall", "@PLT", "\tbl\t"}) {
          const size_t found = body.find(call);
          EXPECT_EQ(found, std::string::npos)
              << body.substr(std::min(found, body.size()), 80) << "\n"
              << text << lanes << " lanes on " << target.cpu;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hone::codegen
