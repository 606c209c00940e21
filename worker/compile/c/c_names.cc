#include "worker/compile/c/c_names.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hone::codegen {
namespace {

constexpr absl::string_view kWords[] = {
    // C, C++ and OpenCL C.
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char16_t", "char32_t", "class", "compl", "complex", "const",
    "const_cast", "constant", "constexpr", "continue", "decltype", "default", "delete", "do",
    "double", "dynamic_cast", "else", "enum", "event_t", "explicit", "export", "extern", "false",
    "float", "for", "friend", "generic", "global", "goto", "half", "if", "image1d_t", "image2d_t",
    "image3d_t", "imaginary", "inline", "int", "kernel", "local", "long", "main", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "pipe",
    "private", "protected", "ptrdiff_t", "public", "quad", "read_only", "read_write", "register",
    "reinterpret_cast", "restrict", "return", "sampler_t", "short", "signed", "size_t", "sizeof",
    "static", "static_assert", "static_cast", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "uchar",
    "uint", "uintptr_t", "intptr_t", "ulong", "uniform", "union", "unsigned", "ushort", "using",
    "vec_step", "virtual", "void", "volatile", "wchar_t", "while", "write_only", "xor", "xor_eq",
    "schar", "warpSize", "threadIdx", "blockIdx", "blockDim", "gridDim", "linux", "unix", "stdin",
    "stdout", "stderr", "errno", "NULL", "INFINITY", "NAN", "HUGE_VAL", "HUGE_VALF", "MAXFLOAT",
    "EOF", "cles_khr_int64",
    // Functions. A variable of that name would hide the function.
    "abs", "barrier", "clamp", "clz", "cross", "degrees", "distance", "dot", "erf", "erfc", "exp",
    "exp2", "fabs", "floor", "ceil", "fma", "fmax", "fmin", "fmod", "gamma", "hypot", "isfinite",
    "isinf", "isnan", "j0", "j1", "jn", "ldexp", "length", "log", "log2", "mad", "max", "min",
    "mem_fence", "mix", "normalize", "popcount", "pow", "prefetch", "printf", "radians",
    "remainder", "rint", "rotate", "round", "rsqrt", "select", "shuffle", "sign", "signbit", "sin",
    "cos", "tan", "sqrt", "step", "tanh", "trunc", "y0", "y1", "yn", "index", "signal", "time",
    "div",
    // The functions of <math.h> for float that CUDA C++ calls.
    "ceilf", "erff", "expf", "fabsf", "floorf", "logf", "powf", "rintf", "rsqrtf", "sqrtf", "tanhf",
    "truncf"};

// Prefixes of built-in functions, of macros, and of functions of the prelude.
constexpr absl::string_view kBeginnings[] = {
    "__",     "as_",     "atom_",   "atomic_", "async_", "convert_", "get_",       "native_",
    "half_",  "vload",   "vstore",  "read_",   "write_", "cl_",      "CL_",        "CLK_",
    "M_E",    "M_LN",    "M_LOG",   "M_PI",    "M_SQRT", "M_1_",     "M_2_",       "FLT_",
    "DBL_",   "INT_",    "CHAR_",   "LONG_",   "UINT_",  "ULONG_",   "SHRT_",      "USHRT_",
    "UCHAR_", "SCHAR_",  "HALF_",   "FP_",     "image",  "round_f",  "round_bf16", "f16_",
    "bf16_",  "f8e4m3_", "f8e5m2_", "hone_"};

// Suffixes of the prelude's functions that have a type: max_float, max_float4.
constexpr absl::string_view kEndings[] = {"_int", "_long", "_float", "_double"};

// char4, float16 …
bool IsVectorType(absl::string_view name) {
  for (const absl::string_view base : {"char", "uchar", "short", "ushort", "int", "uint", "long",
                                       "ulong", "float", "double", "half", "bool", "longlong"}) {
    if (!absl::StartsWith(name, base)) continue;
    const absl::string_view rest = name.substr(base.size());
    if (!rest.empty() && std::all_of(rest.begin(), rest.end(), absl::ascii_isdigit)) return true;
  }
  return false;
}

}  // namespace

bool IsReservedInC(absl::string_view name) {
  absl::string_view word = name;  // without digits at the end
  while (!word.empty() && absl::ascii_isdigit(static_cast<uint8_t>(word.back()))) {
    word.remove_suffix(1);
  }
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](absl::string_view e) { return absl::EndsWith(word, e); }) ||
         std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords) ||
         std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](absl::string_view b) { return absl::StartsWith(name, b); }) ||
         IsVectorType(name);
}

std::string CNames::Add(absl::string_view wish) {
  std::string base;
  for (const char c : wish) base += absl::ascii_isalnum(static_cast<uint8_t>(c)) ? c : '_';
  if (base.empty() || absl::ascii_isdigit(static_cast<uint8_t>(base[0])) || base[0] == '_') {
    base = absl::StrCat("v", base);
  }
  if (IsReservedInC(base)) base += base.find('_') == std::string::npos ? "_" : "";
  if (IsReservedInC(base)) base = absl::StrCat("v_", base);
  if (IsReservedInC(base)) base += "_v";
  std::string name = base;
  for (int number = 1; !used_.insert(name).second; ++number) {
    name = absl::StrCat(base, absl::EndsWith(base, "_") ? "" : "_", number);
  }
  return name;
}

}  // namespace hone::codegen
