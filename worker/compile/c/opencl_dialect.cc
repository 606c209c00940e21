#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "worker/compile/c/c_printer.h"

namespace hone::codegen {
namespace {

// Without cl_khr_fp16, only functions can load and store half, but these use the hardware's
// conversions. max and min of vectors treat NaN as the scalar functions do.
constexpr std::pair<absl::string_view, absl::string_view> kFunctions[] = {
    {"f16_to_float",
     "static float f16_to_float(ushort bits) { return vload_half(0, (const half*)&bits); }\n"},
    {"f16_from_float",
     "static ushort f16_from_float(float x) {\n"
     "  ushort bits;\n"
     "  vstore_half_rte(x, 0, (half*)&bits);\n"
     "  return bits;\n"
     "}\n"},
    {"hone_shuffle_xor", "#define hone_shuffle_xor sub_group_shuffle_xor\n"},
    // Sums of 4 products of bytes. The packed forms are those that every device with
    // cl_khr_integer_dot_product has. The sums of dot_acc_sat would saturate.
    {"hone_dot4_i8",
     "static int hone_dot4_i8(char4 a, char4 b, int sum) {\n"
     "  return (int)((uint)sum + (uint)dot_4x8packed_ss_int(as_uint(a), as_uint(b)));\n"
     "}\n"},
    {"hone_dot4_u8",
     "static int hone_dot4_u8(uchar4 a, uchar4 b, int sum) {\n"
     "  return (int)((uint)sum + dot_4x8packed_uu_uint(as_uint(a), as_uint(b)));\n"
     "}\n"},
    {"hone_dot4_u8i8",
     "static int hone_dot4_u8i8(uchar4 a, char4 b, int sum) {\n"
     "  return (int)((uint)sum + (uint)dot_4x8packed_us_int(as_uint(a), as_uint(b)));\n"
     "}\n"},
    {"arm_dot_acc",
     "#ifdef cl_arm_integer_dot_product_accumulate_int8\n"
     "#pragma OPENCL EXTENSION cl_arm_integer_dot_product_accumulate_int8 : enable\n"
     "#endif\n"},
    {"hone_arm_dot4_i8",
     "static int hone_arm_dot4_i8(char4 a, char4 b, int sum) { return arm_dot_acc(a, b, sum); }\n"},
    {"hone_arm_dot4_u8",
     "static int hone_arm_dot4_u8(uchar4 a, uchar4 b, int sum) {\n"
     "  return (int)arm_dot_acc(a, b, (uint)sum);\n"
     "}\n"},
    {"hone_arm_dot4_u8i8",
     "// a * b = (a - 128) * b + 128 * b\n"
     "static int hone_arm_dot4_u8i8(uchar4 a, char4 b, int sum) {\n"
     "  const uint times_128 = (uint)arm_dot_acc((char4)(1), b, 0) << 7;\n"
     "  return arm_dot_acc(as_char4(a ^ (uchar4)(128)), b, (int)((uint)sum + times_128));\n"
     "}\n"},
#define HONE_VECTOR_FUNCTIONS(N)                                                                   \
  {"f16_to_float" #N, "static float" #N " f16_to_float" #N "(ushort" #N                            \
                      " bits) { return vload_half" #N "(0, (const half*)&bits); }\n"},             \
      {"f16_from_float" #N,                                                                        \
       "static ushort" #N " f16_from_float" #N "(float" #N " x) {\n  ushort" #N                    \
       " bits;\n  vstore_half" #N "_rte(x, 0, (half*)&bits);\n  return bits;\n}\n"},               \
      {"bf16_to_float" #N, "static float" #N " bf16_to_float" #N "(ushort" #N                      \
                           " bits) { return as_float" #N "(convert_uint" #N "(bits) << 16); }\n"}, \
      {"bf16_from_float" #N,                                                                       \
       "// Rounds to nearest even.\n"                                                              \
       "static ushort" #N " bf16_from_float" #N "(float" #N                                        \
       " x) {\n"                                                                                   \
       "  const uint" #N " bits = as_uint" #N                                                      \
       "(x);\n"                                                                                    \
       "  const uint" #N                                                                           \
       " rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;\n"                                    \
       "  return convert_ushort" #N "(select(rounded, (uint" #N ")(0x7fc0), isnan(x)));\n}\n"},    \
      {"max_float" #N, "static float" #N " max_float" #N "(float" #N " a, float" #N                \
                       " b) { return select(a, b, a < b); }\n"},                                   \
      {"min_float" #N, "static float" #N " min_float" #N "(float" #N " a, float" #N                \
                       " b) { return select(a, b, b < a); }\n"},                                   \
      {"max_double" #N, "static double" #N " max_double" #N "(double" #N " a, double" #N           \
                        " b) { return select(a, b, a < b); }\n"},                                  \
      {"min_double" #N, "static double" #N " min_double" #N "(double" #N " a, double" #N           \
                        " b) { return select(a, b, b < a); }\n"}
    HONE_VECTOR_FUNCTIONS(2),
    HONE_VECTOR_FUNCTIONS(4),
    HONE_VECTOR_FUNCTIONS(8),
    HONE_VECTOR_FUNCTIONS(16),
#undef HONE_VECTOR_FUNCTIONS
};

// Operations on vectors of N halves, whose bits are $N short integers. A compiler may not round a
// product and a sum in one step, except in fma.
constexpr char kHalves[] =
    "static ushort$N hone_$F_half$N($P) {\n"
    "  #pragma OPENCL FP_CONTRACT OFF\n"
    "  return as_ushort$N($E);\n"
    "}\n";
struct HalfOperation {
  absl::string_view name, element;
};
constexpr HalfOperation kHalfOperations[] = {
    {"add", "as_half$N(a) + as_half$N(b)"},
    {"sub", "as_half$N(a) - as_half$N(b)"},
    {"mul", "as_half$N(a) * as_half$N(b)"},
    {"fma", "fma(as_half$N(a), as_half$N(b), as_half$N(c))"},
    {"max", "select(as_half$N(a), as_half$N(b), as_half$N(a) < as_half$N(b))"},
    {"min", "select(as_half$N(a), as_half$N(b), as_half$N(b) < as_half$N(a))"},
};

class OpenClC final : public CDialect {
 public:
  explicit OpenClC(bool computes_f16) : computes_f16_(computes_f16) {}

  std::string Prelude(bool has_f64) const override {
    return has_f64 ? "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" : "";
  }
  std::string Define(absl::string_view name) const override {
    for (const auto& [known, text] : kFunctions) {
      if (known == name) return std::string(text);
    }
    if (!absl::StrContains(name, "_half")) return "";
    for (const int lanes : {2, 4, 8, 16}) {
      if (name == absl::StrCat("as_half", lanes)) {
        return "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
      }
      for (const HalfOperation& operation : kHalfOperations) {
        if (name == HalfFunction(operation.name, lanes)) return DefineHalf(operation, lanes);
      }
    }
    return "";
  }
  std::string KernelHead(const std::array<int64_t, 3>& block) const override {
    return absl::StrCat("__kernel __attribute__((reqd_work_group_size(", block[0], ", ", block[1],
                        ", ", block[2], ")))\nvoid");
  }
  absl::string_view Qualifier(Space space) const override {
    return space == Space::kGlobal ? "__global " : space == Space::kShared ? "__local " : "";
  }
  absl::string_view ThreadIndex(ir::ThreadAxis axis) const override {
    switch (axis) {
      case ir::ThreadAxis::kBlockX:
        return "get_group_id(0)";
      case ir::ThreadAxis::kBlockY:
        return "get_group_id(1)";
      case ir::ThreadAxis::kBlockZ:
        return "get_group_id(2)";
      case ir::ThreadAxis::kThreadX:
        return "get_local_id(0)";
      case ir::ThreadAxis::kThreadY:
        return "get_local_id(1)";
      case ir::ThreadAxis::kThreadZ:
        return "get_local_id(2)";
      case ir::ThreadAxis::kNone:
      case ir::ThreadAxis::kVThread:
        return "";
    }
    return "";
  }
  absl::string_view Barrier(bool global) const override {
    return global ? "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"
                  : "barrier(CLK_LOCAL_MEM_FENCE);";
  }
  bool HasVectors() const override { return true; }
  std::string Load(const VectorAccess& from) const override {
    if (!from.aligned) return absl::StrCat("vload", from.lanes, "(0, &", from.first, ")");
    return absl::StrCat("*(", Qualifier(from.space), "const ", from.type, from.lanes, "*)&",
                        from.first);
  }
  Assignment Store(const VectorAccess& to, absl::string_view value) const override {
    if (!to.aligned) {
      return {"", absl::StrCat("vstore", to.lanes, "(", value, ", 0, &", to.first, ");")};
    }
    return {absl::StrCat("*(", Qualifier(to.space), to.type, to.lanes, "*)&", to.first),
            std::string(value)};
  }
  std::string PackedFunction(absl::string_view operation, ir::DType dtype,
                             int lanes) const override {
    return computes_f16_ && dtype == ir::DType::kF16 ? HalfFunction(operation, lanes) : "";
  }

 private:
  static std::string HalfFunction(absl::string_view operation, int lanes) {
    return absl::StrCat("hone_", operation, "_half", lanes);
  }
  static std::string DefineHalf(const HalfOperation& operation, int lanes) {
    const bool has_c = absl::StrContains(operation.element, "(c)");
    return absl::StrReplaceAll(
        absl::StrReplaceAll(kHalves, {{"$E", operation.element}}),
        {{"$F", operation.name},
         {"$P", absl::StrCat("ushort", lanes, " a, ushort", lanes, " b",
                             has_c ? absl::StrCat(", ushort", lanes, " c") : "")},
         {"$N", absl::StrCat(lanes)}});
  }

  const bool computes_f16_;
};

class OpenCl final : public Backend {
 public:
  absl::string_view name() const override { return "opencl"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kOpenCl;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                                const CodeOptions& /*options*/) const override {
    return PrintGpuSource(program, target, OpenClDialect(target.HasFeature("fp16")), kOpenClSource);
  }
};

}  // namespace

absl::string_view CDialect::TypeName(ir::DType dtype) const {
  switch (dtype) {
    case ir::DType::kF16:
    case ir::DType::kBF16:
      return "ushort";
    case ir::DType::kF32:
      return "float";
    case ir::DType::kF64:
      return "double";
    case ir::DType::kI8:
      return "char";
    case ir::DType::kU8:
    case ir::DType::kBool:
    case ir::DType::kF8E4M3:
    case ir::DType::kF8E5M2:
      return "uchar";
    case ir::DType::kI32:
      return "int";
    case ir::DType::kI64:
      return "long";
    case ir::DType::kI4:
    case ir::DType::kU4:  // lowering turns them into bytes
      break;
  }
  return "";
}

const CDialect& OpenClDialect(bool computes_f16) {
  static const auto* const in_float = new OpenClC(false);
  static const auto* const in_half = new OpenClC(true);
  return computes_f16 ? *in_half : *in_float;
}

const Backend* OpenClBackend() {
  static const auto* const backend = new OpenCl;
  return backend;
}

}  // namespace hone::codegen
