#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "worker/compile/c/c_printer.h"

namespace hone::codegen {
namespace {

// A kernel that uses more shared memory than this declares none. It expects all of its shared
// memory to be passed at the launch.
constexpr int64_t kCudaStaticSharedBytes = 48 << 10;

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

// Returns the definition of a function that computes in f16 or bf16: of vectors ("hone_add_f16"),
// or of two elements in a register ("hone_add_f16x2"); also of their parts. Empty if there is no
// such function. Where an architecture lacks the instruction, and on a CPU, they compute in float.
// In the text, $Q is the qualifier of functions.
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

// In these texts, $Q is the qualifier of functions. Functions that contain PTX are for CUDA's
// compiler only; others find them in tests/fakes/cuda/emulation.h.
struct Definition {
  absl::string_view name;
  bool is_ptx;
  absl::string_view text;
};

#define HONE_DP4A(NAME, A, B, TYPES)                                                        \
  "$Q int hone_dp4a_" NAME "(hone_" A "4 a, hone_" B                                        \
  "4 b, int sum) {\n"                                                                       \
  "  int result;\n"                                                                         \
  "  asm(\"dp4a." TYPES                                                                     \
  " %0, %1, %2, %3;\"\n"                                                                    \
  "      : \"=r\"(result) : \"r\"(*(const int*)&a), \"r\"(*(const int*)&b), \"r\"(sum));\n" \
  "  return result;\n"                                                                      \
  "}\n"

constexpr Definition kDefinitions[] = {
    {"INFINITY", false, "#define INFINITY __int_as_float(0x7f800000)\n"},
    {"NAN", false, "#define NAN __int_as_float(0x7fc00000)\n"},
    {"as_uint", false, "$Q uint as_uint(float x) { return __float_as_uint(x); }\n"},
    {"as_float", false, "$Q float as_float(uint bits) { return __uint_as_float(bits); }\n"},

    {"f16_to_float", true,
     "$Q float f16_to_float(ushort bits) {\n"
     "  float x;\n"
     "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits));\n"
     "  return x;\n"
     "}\n"},
    {"f16_from_float", true,
     "$Q ushort f16_from_float(float x) {\n"
     "  ushort bits;\n"
     "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));\n"
     "  return bits;\n"
     "}\n"},
    {"hone_copy_async_4", true,
     "$Q void hone_copy_async_4(void* to, const void* from) {\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\"\n"
     "               :: \"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\");\n"
     "}\n"},
    {"hone_copy_async_8", true,
     "$Q void hone_copy_async_8(void* to, const void* from) {\n"
     "  asm volatile(\"cp.async.ca.shared.global [%0], [%1], 8;\"\n"
     "               :: \"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\");\n"
     "}\n"},
    {"hone_copy_async_16", true,
     "$Q void hone_copy_async_16(void* to, const void* from) {\n"
     "  asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16;\"\n"
     "               :: \"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from) : \"memory\");\n"
     "}\n"},
    {"hone_commit_group", true,
     "$Q void hone_commit_group() {\n"
     "  asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n"
     "}\n"},
    {"hone_wait_group", true,
     "template <int kPending>\n"
     "$Q void hone_wait_group() {\n"
     "  asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(kPending) : \"memory\");\n"
     "}\n"},
    {"hone_shared_memory", true,
     "$Q uchar* hone_shared_memory() {\n"
     "  extern __shared__ __align__(128) uchar memory[];\n"
     "  return memory;\n"
     "}\n"},
    // All threads of a block get here, so all lanes that exist take part.
    {"hone_shuffle_xor", true,
     "template <typename T>\n"
     "$Q T hone_shuffle_xor(T x, int lanes) { return __shfl_xor_sync(0xffffffff, x, lanes); }\n"},
    // Sums of 4 products of bytes.
    {"hone_dp4a_i8", true, HONE_DP4A("i8", "schar", "schar", "s32.s32")},
    {"hone_dp4a_u8", true, HONE_DP4A("u8", "uchar", "uchar", "u32.u32")},
    {"hone_dp4a_u8i8", true, HONE_DP4A("u8i8", "uchar", "schar", "u32.s32")},

    // Vectors. Those of CUDA have at most 4 elements and no operators.
    {"hone_vector", false,
     "// N elements. One instruction loads or stores up to 16 bytes of them.\n"
     "template <typename T, int N>\n"
     "struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) hone_vector {\n"
     "  T v[N];\n"
     "};\n"
     "template <typename T, int N, typename F>\n"
     "$Q hone_vector<T, N> hone_make_vector(F element) {\n"
     "  hone_vector<T, N> result;\n"
     "  #pragma unroll\n"
     "  for (int i = 0; i < N; ++i) result.v[i] = element(i);\n"
     "  return result;\n"
     "}\n"},
    {"hone_load", false,
     "// Elements of any alignment.\n"
     "template <int N, typename T>\n"
     "$Q hone_vector<T, N> hone_load(const T* from) {\n"
     "  return hone_make_vector<T, N>([&](int i) { return from[i]; });\n"
     "}\n"},
    {"hone_store", false,
     "// Elements of any alignment.\n"
     "template <int N, typename T>\n"
     "$Q void hone_store(T* to, hone_vector<T, N> value) {\n"
     "  #pragma unroll\n"
     "  for (int i = 0; i < N; ++i) to[i] = value.v[i];\n"
     "}\n"},
    {"hone_broadcast", false,
     "template <typename T, int N>\n"
     "$Q hone_vector<T, N> hone_broadcast(T x) {\n"
     "  return hone_make_vector<T, N>([&](int) { return x; });\n"
     "}\n"},
};

#undef HONE_DP4A

// $O is the operator.
constexpr char kOperator[] =
    "template <typename T, int N>\n"
    "$Q hone_vector<T, N> operator$O(hone_vector<T, N> a, hone_vector<T, N> b) {\n"
    "  return hone_make_vector<T, N>([&](int i) { return a.v[i] $O b.v[i]; });\n"
    "}\n"
    "template <typename T, int N>\n"
    "$Q hone_vector<T, N> operator$O(hone_vector<T, N> a, T b) {\n"
    "  return hone_make_vector<T, N>([&](int i) { return a.v[i] $O b; });\n"
    "}\n"
    "template <typename T, int N>\n"
    "$Q hone_vector<T, N> operator$O(T a, hone_vector<T, N> b) {\n"
    "  return hone_make_vector<T, N>([&](int i) { return a $O b.v[i]; });\n"
    "}\n";
constexpr char kMinus[] =
    "template <typename T, int N>\n"
    "$Q hone_vector<T, N> operator-(hone_vector<T, N> a) {\n"
    "  return hone_make_vector<T, N>([&](int i) { return -a.v[i]; });\n"
    "}\n";

// Applies a function $F with result type $R to each element, of type $T, of one or two vectors.
constexpr absl::string_view kUnary =
    "$Q $R$N $F$N($A$N a) {\n"
    "  return hone_make_vector<$U, $L>([&](int i) { return $E(a.v[i]); });\n"
    "}\n";
constexpr absl::string_view kBinary =
    "$Q $R$N $F$N($A$N a, $A$N b) {\n"
    "  return hone_make_vector<$U, $L>([&](int i) { return $E(a.v[i], b.v[i]); });\n"
    "}\n";

// A function of <math.h>, $E, for vectors of any length.
constexpr absl::string_view kMath =
    "template <int N>\n"
    "$Q hone_vector<$T, N> hone_$E(hone_vector<$T, N> a) {\n"
    "  return hone_make_vector<$T, N>([&](int i) { return $E(a.v[i]); });\n"
    "}\n";
constexpr absl::string_view kPow =
    "template <int N>\n"
    "$Q hone_vector<$T, N> hone_$E(hone_vector<$T, N> a, hone_vector<$T, N> b) {\n"
    "  return hone_make_vector<$T, N>([&](int i) { return $E(a.v[i], b.v[i]); });\n"
    "}\n";
constexpr absl::string_view kMathFunctions[] = {"fabs", "rint", "exp",   "log",  "sqrt",  "rsqrt",
                                                "tanh", "erf",  "floor", "ceil", "trunc", "pow"};

constexpr absl::string_view kTypes[] = {"schar", "uchar", "ushort", "int",
                                        "long",  "float", "double"};

// Splits "float4" into "float" and "4".
std::pair<absl::string_view, absl::string_view> SplitLanes(absl::string_view name) {
  size_t digits = 0;
  while (digits < name.size() &&
         absl::ascii_isdigit(static_cast<uint8_t>(name[name.size() - 1 - digits]))) {
    ++digits;
  }
  return {name.substr(0, name.size() - digits), name.substr(name.size() - digits)};
}

// CUDA C++17 as NVRTC compiles it without include files. What is not plain C++ is in functions of
// the prelude, which start with "hone_"; those that contain PTX exist only `#ifdef __CUDACC__`.
// Other compilers need functions of the same names: tests/fakes/cuda/emulation.h has them for CPUs.
class CudaC final : public CDialect {
 public:
  std::string Prelude(bool /*has_f64*/) const override {
    return "typedef signed char schar;\n"
           "typedef unsigned char uchar;\n"
           "typedef unsigned short ushort;\n"
           "typedef unsigned int uint;\n"
           "typedef unsigned long ulong;\n";
  }
  absl::string_view FunctionQualifier() const override { return kQualifier; }
  std::string Define(absl::string_view name) const override {
    for (const Definition& definition : kDefinitions) {
      if (definition.name != name) continue;
      const std::string text = absl::StrReplaceAll(definition.text, {{"$Q", kQualifier}});
      return definition.is_ptx ? absl::StrCat("#ifdef __CUDACC__\n", text, "#endif\n") : text;
    }
    if (const std::string packed = DefineCudaPacked(name); !packed.empty()) {
      return absl::StrReplaceAll(packed, {{"$Q", kQualifier}});
    }
    if (absl::ConsumePrefix(&name, "operator")) return name.empty() ? "" : DefineOperator(name);
    const auto [base, lanes] = SplitLanes(name);
    return lanes.empty() ? DefineMath(name) : DefineVector(base, lanes);
  }
  std::string MathFunction(absl::string_view name, ir::DType dtype) const override {
    return absl::StrCat(name, dtype == ir::DType::kF64 ? "" : "f");
  }
  std::string KernelHead(const std::array<int64_t, 3>& block) const override {
    return absl::StrCat("extern \"C\" __global__ void __launch_bounds__(",
                        block[0] * block[1] * block[2], ")");
  }
  absl::string_view Qualifier(Space space) const override {
    return space == Space::kShared ? "__shared__ " : "";
  }
  absl::string_view PointerQualifier(Space) const override { return ""; }
  absl::string_view TypeName(ir::DType dtype) const override {
    return dtype == ir::DType::kI8 ? "schar" : CDialect::TypeName(dtype);
  }
  absl::string_view Restrict() const override { return "__restrict__"; }
  int64_t StaticSharedBytes() const override { return kCudaStaticSharedBytes; }
  absl::string_view ThreadIndex(ir::ThreadAxis axis) const override {
    return axis == ir::ThreadAxis::kVThread ? "" : ir::ThreadAxisName(axis);  // CUDA's own names
  }
  absl::string_view Barrier(bool /*global*/) const override { return "__syncthreads();"; }
  std::string CopyAsync(int bytes) const override {
    return absl::StrCat("hone_copy_async_", bytes);
  }
  std::string CommitCopies() const override { return "hone_commit_group();"; }
  std::string WaitForCopies(int pending) const override {
    return absl::StrCat("hone_wait_group<", pending, ">();");
  }

  bool HasVectors() const override { return true; }
  std::string VectorType(absl::string_view type, int lanes) const override {
    return absl::StrCat("hone_", type, lanes);
  }
  std::string Broadcast(absl::string_view type, int lanes, absl::string_view value) const override {
    return absl::StrCat("hone_broadcast<", type, ", ", lanes, ">(", value, ")");
  }
  std::string VectorFunction(absl::string_view name, ir::DType dtype) const override {
    return absl::StrCat("hone_", MathFunction(name, dtype));
  }
  std::string PackedFunction(absl::string_view operation, ir::DType dtype,
                             int /*lanes*/) const override {
    std::string function = absl::StrCat("hone_", operation, "_", ir::DTypeName(dtype));
    return DefineCudaPacked(function).empty() ? "" : function;
  }
  std::string Lane(absl::string_view vector, absl::string_view lane) const override {
    return absl::StrCat(vector, ".v[", lane, "]");
  }
  std::string Load(const VectorAccess& from) const override {
    if (!from.aligned) return absl::StrCat("hone_load<", from.lanes, ">(&", from.first, ")");
    return absl::StrCat("*(const ", VectorType(from.type, from.lanes), "*)&", from.first);
  }
  Assignment Store(const VectorAccess& to, absl::string_view value) const override {
    if (!to.aligned) return {"", absl::StrCat("hone_store(&", to.first, ", ", value, ");")};
    return {absl::StrCat("*(", VectorType(to.type, to.lanes), "*)&", to.first), std::string(value)};
  }

 private:
  static constexpr char kQualifier[] = "__device__ __forceinline__";

  static std::string DefineOperator(absl::string_view symbol) {
    return absl::StrReplaceAll(symbol == "-" ? absl::StrCat(kOperator, kMinus) : kOperator,
                               {{"$Q", kQualifier}, {"$O", symbol}});
  }
  // hone_expf, hone_exp …
  static std::string DefineMath(absl::string_view name) {
    if (!absl::ConsumePrefix(&name, "hone_")) return "";
    for (const absl::string_view function : kMathFunctions) {
      const bool is_float = name == absl::StrCat(function, "f");
      if (name != function && !is_float) continue;
      return absl::StrReplaceAll(
          function == "pow" ? kPow : kMath,
          {{"$Q", kQualifier}, {"$T", is_float ? "float" : "double"}, {"$E", name}});
    }
    return "";
  }
  // Defines vector types, and functions that work element by element: hone_float4, max_float4,
  // f16_to_float4.
  static std::string DefineVector(absl::string_view base, absl::string_view lanes) {
    const auto function = [&, lanes = lanes](absl::string_view form, absl::string_view result,
                                             absl::string_view argument,
                                             absl::string_view element) {
      return absl::StrReplaceAll(form, {{"$Q", kQualifier},
                                        {"$F", base},
                                        {"$R", absl::StrCat("hone_", result)},
                                        {"$A", absl::StrCat("hone_", argument)},
                                        {"$U", result},
                                        {"$E", element},
                                        {"$N", lanes},
                                        {"$L", lanes}});
    };
    for (const absl::string_view type : kTypes) {
      if (base != absl::StrCat("hone_", type)) continue;
      return absl::StrCat("typedef hone_vector<", type, ", ", lanes, "> ", base, lanes, ";\n");
    }
    for (const absl::string_view type : {"f16", "bf16"}) {
      if (base == absl::StrCat(type, "_to_float")) {
        return function(kUnary, "float", "ushort", base);
      }
      if (base == absl::StrCat(type, "_from_float")) {
        return function(kUnary, "ushort", "float", base);
      }
    }
    for (const absl::string_view type : {"float", "double"}) {
      if (base == absl::StrCat("max_", type) || base == absl::StrCat("min_", type)) {
        return function(kBinary, type, type, base);
      }
    }
    return "";
  }
};

// The largest grid and block of every NVIDIA GPU.
constexpr std::array<int64_t, 3> kMaxGrid = {(int64_t{1} << 31) - 1, 65535, 65535};
constexpr std::array<int64_t, 3> kMaxBlock = {1024, 1024, 64};

absl::Status CheckExtents(const target::GpuLaunch& launch) {
  constexpr char kAxes[] = "xyz";
  for (size_t d = 0; d < 3; ++d) {
    const auto check = [&](absl::string_view what, int64_t used, int64_t allowed) {
      if (used <= allowed) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("kernel ", launch.kernel, " uses ", used, " ",
                                                     what, " in ", std::string(1, kAxes[d]),
                                                     ", CUDA allows ", allowed));
    };
    HONE_RETURN_IF_ERROR(check("blocks", launch.grid[d], kMaxGrid[d]));
    HONE_RETURN_IF_ERROR(check("threads", launch.block[d], kMaxBlock[d]));
  }
  return absl::OkStatus();
}

class Cuda final : public Backend {
 public:
  absl::string_view name() const override { return "cuda"; }
  bool Serves(const target::Target& target) const override {
    return target.kind == target::Kind::kCuda;
  }
  absl::StatusOr<Code> Generate(const lower::LoweredProgram& program, const target::Target& target,
                                const CodeOptions& /*options*/) const override {
    HONE_ASSIGN_OR_RETURN(Code code, PrintGpuSource(program, target, CudaC(), kCudaSource));
    for (const target::GpuLaunch& launch : code.module->launches) {
      HONE_RETURN_IF_ERROR(CheckExtents(launch));
    }
    return code;
  }
};

}  // namespace

const Backend* CudaBackend() {
  static const auto* const backend = new Cuda;
  return backend;
}

}  // namespace hone::codegen
