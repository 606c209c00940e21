#include "tests/worker/compile/c_backend.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"
#include "tests/temporary_folder.h"
#include "worker/compile/c/c_printer.h"
#include "worker/compile/c/dialect.h"

namespace hone::codegen {
namespace {

class HostDialect final : public CDialect {
 public:
  std::string Prelude(bool /*has_f64*/) const override {
    return R"(#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t uchar;
typedef uint16_t ushort;
typedef uint32_t uint;
typedef uint64_t ulong;
static uint as_uint(float x) { uint bits; memcpy(&bits, &x, 4); return bits; }
static float as_float(uint bits) { float x; memcpy(&x, &bits, 4); return x; }
static float hone_rsqrtf(float x) { return 1 / sqrtf(x); }
static double hone_rsqrt(double x) { return 1 / sqrt(x); }
)";
  }
  std::string MathFunction(absl::string_view name, ir::DType dtype) const override {
    return absl::StrCat(name == "rsqrt" ? "hone_" : "", name, dtype == ir::DType::kF64 ? "" : "f");
  }
  absl::string_view TypeName(ir::DType dtype) const override {
    return dtype == ir::DType::kI8 ? "int8_t" : CDialect::TypeName(dtype);
  }
  std::string KernelHead(const std::array<int64_t, 3>& /*block*/) const override {
    return "static void";
  }
  absl::string_view Qualifier(Space /*space*/) const override { return ""; }
  absl::string_view ThreadIndex(ir::ThreadAxis /*axis*/) const override { return ""; }
  absl::string_view Barrier(bool /*global*/) const override { return ""; }
  absl::string_view Unroll() const override { return ""; }
  bool OneThread() const override { return true; }
};

// The functions of target/kernel_abi.h around the printed ones.
std::string AbiFunctions(const lower::LoweredProgram& program, const CModule& module) {
  std::string text;
  const auto number = [&](const char* symbol, const char* type, const char* parameters,
                          int64_t value) {
    absl::StrAppend(&text, type, " ", symbol, "(", parameters, ") { return ", value, "; }\n");
  };
  number(target::kAbiSymbol, "int32_t", "void", target::kKernelAbiVersion);
  number(target::kThreadsSymbol, "int32_t", "void", 1);
  number(target::kWorkspaceSymbol, "int64_t", "int32_t threads", program.WorkspaceBytes(1));
  number(target::kPackedSymbol, "int64_t", "void", program.packed_bytes);
  number(target::kRangeExtentSymbol, "int64_t", "void", 0);
  number(target::kRangeSymbol, "int32_t",
         "void** b, void* p, void* w, int64_t begin, int64_t end, int64_t thread", 0);
  std::vector<std::string> arguments;
  for (int a = 0; a < program.arguments; ++a) arguments.push_back(absl::StrCat("b[", a, "]"));
  const auto call = [&](const char* symbol, const char* parameters, const char* memory,
                        bool packs) {
    absl::StrAppend(&text, "int32_t ", symbol, "(void** b, ", parameters, ") {\n");
    for (size_t k = 0; k < program.kernels.size(); ++k) {
      if ((program.kernels[k].name == ir::kPrepackKernel) != packs) continue;
      absl::StrAppend(&text, "  ", module.functions[k], "(", absl::StrJoin(arguments, ", "), memory,
                      ");\n");
    }
    text += "  return 0;\n}\n";
  };
  call(target::kPrepackSymbol, "void* p", ", p, 0", true);
  call(target::kRunSymbol, "void* p, void* w, void* runtime", ", p, w", false);
  return text;
}

class C final : public Backend {
 public:
  absl::string_view name() const override { return "c"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kCpu;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target&,
                                const CodeOptions&) const override {
    HONE_ASSIGN_OR_RETURN(const CModule module, PrintC(program, HostDialect()));
    const std::string text = absl::StrCat(module.text, "\n", AbiFunctions(program, module));
    return Code{kCSource, text, text};
  }
};

}  // namespace

const Backend* CBackend() {
  static const auto* const backend = new C;
  return backend;
}

absl::StatusOr<std::string> CompileC(const Code& code) {
  const TemporaryFolder folder;
  const std::string source = folder / "kernel.c", object = folder / "o";
  HONE_RETURN_IF_ERROR(WriteFileAtomically(source, code.bytes, Durability::kProcess));
  const std::string command = absl::StrCat(
      "cc -std=gnu11 -O1 -Wall -Werror -Wno-unused-function -Wno-unknown-pragmas "
      "-ffp-contract=off -shared -fPIC ",
      source, " -o ", object, " -lm");
  if (std::system(command.c_str()) != 0)
    return absl::InternalError(absl::StrCat("cc refuses\n", code.bytes));
  return ReadFile(object);
}

}  // namespace hone::codegen
