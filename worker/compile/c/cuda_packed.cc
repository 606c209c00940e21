#include "worker/compile/c/cuda_packed.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hone::codegen {
namespace {

constexpr char kPairs[] =
    "// Elements i and i + 1 of a vector in a register.\n"
    "template <int N>\n"
    "$Q uint hone_pair(const hone_vector<ushort, N>& a, int i) {\n"
    "  return a.v[i] | (uint)a.v[i + 1] << 16;\n"
    "}\n"
    "template <int N, typename F>\n"
    "$Q hone_vector<ushort, N> hone_make_pairs(F pair) {\n"
    "  hone_vector<ushort, N> result;\n"
    "  #pragma unroll\n"
    "  for (int i = 0; i < N; i += 2) {\n"
    "    const uint two = pair(i);\n"
    "#ifdef __CUDACC__\n"  // a shift would remain in the machine code
    "    asm(\"mov.b32 {%0, %1}, %2;\" : \"=h\"(result.v[i]), \"=h\"(result.v[i + 1]) : "
    "\"r\"(two));\n"
    "#else\n"
    "    result.v[i] = (ushort)two;\n"
    "    result.v[i + 1] = (ushort)(two >> 16);\n"
    "#endif\n"
    "  }\n"
    "  return result;\n"
    "}\n";

// In these texts, $F is the operation, $T the type and $X the parameters "a, b" or "a, b, c".
constexpr char kVectors[] =
    "template <int N, typename... V>\n"
    "$Q hone_vector<ushort, N> hone_$F_$T(hone_vector<ushort, N> a, V... b) {\n"
    "  return hone_make_pairs<N>(\n"
    "      [&](int i) { return hone_$F_$Tx2(hone_pair(a, i), hone_pair(b, i)...); });\n"
    "}\n";
constexpr char kTwo[] =
    "$Q uint hone_$F_$Tx2($P) {\n"
    "#if __CUDA_ARCH__ >= $A\n"
    "$I"
    "#else\n"
    "  const auto element = [&](int shift) -> uint {\n"
    "    const ushort p = (ushort)(a >> shift), q = (ushort)(b >> shift);\n"
    "    const float x = $T_to_float(p), y = $T_to_float(q);\n"
    "    return $E;\n"
    "  };\n"
    "  return element(0) | element(16) << 16;\n"
    "#endif\n"
    "}\n";
// A maximum is the first operand on ties and for NaN, which the instruction max is not.
constexpr char kSelect[] =
    "  uint less;\n"
    "  asm(\"set.lt.u32.f16x2 %0, %1, %2;\" : \"=r\"(less) : $C);\n"
    "  return (a & ~less) | (b & less);\n";

struct Operation {
  absl::string_view name;
  int operands;
  absl::string_view element;  // computed in float
  // The instruction with its operands, and the registers %1 and following.
  absl::string_view f16, f16_registers;
  absl::string_view bf16, bf16_registers;  // empty: in float
};

// bf16 has only a fused multiply-add: a + b is a * 1 + b, and a * b is a * b + -0.
constexpr Operation kOperations[] = {
    {"add", 2, "$T_from_float(x + y)", "add.rn.f16x2 %0, %1, %2", "\"r\"(a), \"r\"(b)",
     "fma.rn.bf16x2 %0, %1, %3, %2", "\"r\"(a), \"r\"(b), \"r\"(0x3f803f80)"},
    {"sub", 2, "$T_from_float(x - y)", "sub.rn.f16x2 %0, %1, %2", "\"r\"(a), \"r\"(b)",
     "fma.rn.bf16x2 %0, %2, %3, %1", "\"r\"(a), \"r\"(b), \"r\"(0xbf80bf80)"},
    {"mul", 2, "$T_from_float(x * y)", "mul.rn.f16x2 %0, %1, %2", "\"r\"(a), \"r\"(b)",
     "fma.rn.bf16x2 %0, %1, %2, %3", "\"r\"(a), \"r\"(b), \"r\"(0x80008000)"},
    {"fma", 3, "$T_from_float(x * y + $T_to_float((ushort)(c >> shift)))",
     "fma.rn.f16x2 %0, %1, %2, %3", "\"r\"(a), \"r\"(b), \"r\"(c)", "fma.rn.bf16x2 %0, %1, %2, %3",
     "\"r\"(a), \"r\"(b), \"r\"(c)"},
    {"max", 2, "x < y ? q : p", "", "\"r\"(a), \"r\"(b)", "", ""},
    {"min", 2, "y < x ? q : p", "", "\"r\"(b), \"r\"(a)", "", ""},
};

std::string DefineTwo(const Operation& operation, bool is_bf16) {
  const absl::string_view ptx = is_bf16 ? operation.bf16 : operation.f16,
                          registers = is_bf16 ? operation.bf16_registers : operation.f16_registers;
  std::string instruction;
  if (!ptx.empty()) {
    instruction = absl::StrCat("  uint result;\n  asm(\"", ptx,
                               ";\" : \"=r\"(result) : ", registers, ");\n  return result;\n");
  } else if (!registers.empty()) {
    instruction = absl::StrReplaceAll(kSelect, {{"$C", registers}});
  }
  std::string text = kTwo;
  if (instruction.empty()) {
    text =
        absl::StrReplaceAll(text, {{"#if __CUDA_ARCH__ >= $A\n$I#else\n", ""}, {"#endif\n", ""}});
  }
  return absl::StrReplaceAll(
      text, {{"$A", is_bf16 ? "800" : "530"},
             {"$I", instruction},
             {"$E", operation.element},
             {"$P", operation.operands == 3 ? "uint a, uint b, uint c" : "uint a, uint b"}});
}

}  // namespace

std::string DefineCudaPacked(absl::string_view name) {
  if (name == "hone_make_pairs") return kPairs;
  for (const Operation& operation : kOperations) {
    for (const absl::string_view type : {"f16", "bf16"}) {
      const std::string vectors = absl::StrCat("hone_", operation.name, "_", type);
      if (name != vectors && name != absl::StrCat(vectors, "x2")) continue;
      const std::string text =
          name == vectors ? std::string(kVectors) : DefineTwo(operation, type == "bf16");
      return absl::StrReplaceAll(absl::StrReplaceAll(text, {{"$F", operation.name}}),
                                 {{"$T", type}});
    }
  }
  return "";
}

}  // namespace hone::codegen
