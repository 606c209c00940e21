#include "worker/compile/c/c_prelude.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hone::codegen {
namespace {

// In the text, $Q is the dialect's qualifier of functions, $T the type, $U its unsigned
// counterpart, $B the number of its last bit and $F the suffix of its constants.
struct Definition {
  absl::string_view name;  // without the type
  bool typed;
  absl::string_view text;
};

constexpr Definition kDefinitions[] = {
    // As in the interpreter, the result is the first operand on ties and for unordered values.
    {"max", true, "$Q $T max_$T($T a, $T b) { return a < b ? b : a; }\n"},
    {"min", true, "$Q $T min_$T($T a, $T b) { return b < a ? b : a; }\n"},

    {"add", true, "$Q $T add_$T($T a, $T b) { return ($T)(($U)a + ($U)b); }  // wraps\n"},
    {"sub", true, "$Q $T sub_$T($T a, $T b) { return ($T)(($U)a - ($U)b); }  // wraps\n"},
    {"mul", true, "$Q $T mul_$T($T a, $T b) { return ($T)(($U)a * ($U)b); }  // wraps\n"},
    {"neg", true, "$Q $T neg_$T($T a) { return ($T)(0 - ($U)a); }  // wraps\n"},
    {"abs", true, "$Q $T abs_$T($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; }\n"},
    {"div", true,
     "// Division by 0 gives 0.\n"
     "$Q $T div_$T($T a, $T b) { return b == 0 ? 0 : b == -1 ? ($T)(0 - ($U)a) : a / b; }\n"},
    {"shift_left", true,
     "// A count that is negative or at least the width shifts every bit out.\n"
     "$Q $T shift_left_$T($T a, $T n) { return ($U)n > $B ? 0 : ($T)(($U)a << n); }\n"},
    {"shift_right", true,
     "// A count that is negative or at least the width leaves the sign.\n"
     "$Q $T shift_right_$T($T a, $T n) { return a >> (($U)n > $B ? $B : n); }\n"},
    {"floor_div", true, "$Q $T floor_div_$T($T a, $T b) { return a / b - (a % b < 0); }\n"},
    {"floor_mod", true,
     "$Q $T floor_mod_$T($T a, $T b) { return a % b < 0 ? a % b + b : a % b; }\n"},

    {"long_from", true,
     "// Drops the fraction and wraps; NaN and the infinities give 0.\n"
     "$Q long long_from_$T($T x) {\n"
     "  if (fabs(x) < 0x1p63$F) return (long)x;\n"
     "  if (!(fabs(x) < INFINITY)) return 0;\n"
     "  const $T rest = fmod(x, 0x1p64$F);\n"
     "  return rest < 0 ? (long)(0 - (ulong)-rest) : (long)(ulong)rest;\n"
     "}\n"},
    {"int_from", true,
     "$Q int int_from_$T($T x) {\n"
     "  return fabs(x) < 0x1p31$F ? (int)x : (int)long_from_$T(x);\n"
     "}\n"},

    {"sigmoid", true,
     "$Q $T sigmoid_$T($T x) {\n"
     "  const $T e = exp(-fabs(x));  // does not overflow\n"
     "  return (x < 0 ? e : 1) / (1 + e);\n"
     "}\n"},

    // Rounding to odd: the last bit tells whether bits were lost, so that the result rounds to a
    // short float as the exact value would.
    {"odd_from_long", false,
     "// Rounds towards 0, and sets the last bit if bits are lost.\n"
     "$Q float odd_from_long(long x) {\n"
     "  const ulong magnitude = x < 0 ? 0 - (ulong)x : (ulong)x;\n"
     "  const float nearest = (float)magnitude;\n"
     "  const ulong back = (ulong)nearest;\n"
     "  uint bits = as_uint(nearest);\n"
     "  if (back > magnitude) --bits;\n"
     "  if (back != magnitude) bits |= 1;\n"
     "  return x < 0 ? -as_float(bits) : as_float(bits);\n"
     "}\n"},
    {"odd_from_double", false,
     "// Rounds towards 0, and sets the last bit if bits are lost.\n"
     "$Q float odd_from_double(double x) {\n"
     "  const float nearest = (float)x;\n"
     "  uint bits = as_uint(nearest);\n"
     "  if (fabs((double)nearest) > fabs(x)) --bits;\n"
     "  if ((double)nearest != x) bits |= 1;\n"
     "  return as_float(bits);\n"
     "}\n"},

    {"f16_to_float", false,
     "$Q float f16_to_float(ushort bits) {\n"
     "  // The product moves the exponent and normalizes denormals.\n"
     "  const uint magnitude = (uint)(bits & 0x7fff) << 13;\n"
     "  const uint number = as_uint(as_float(magnitude) * 0x1p112f);\n"
     "  const uint special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;\n"
     "  return as_float(number | special | (uint)(bits & 0x8000) << 16);\n"
     "}\n"},
    {"f16_from_float", false,
     "// Rounds to nearest even.\n"
     "$Q ushort f16_from_float(float x) {\n"
     "  const uint sign = as_uint(x) >> 16 & 0x8000, magnitude = as_uint(x) & 0x7fffffff;\n"
     "  if (magnitude > 0x7f800000) return (ushort)(sign | 0x7e00);\n"
     "  if (magnitude >= 0x47800000) return (ushort)(sign | 0x7c00);\n"
     "  if (magnitude < 0x38800000) {\n"
     "    return (ushort)(sign | (as_uint(as_float(magnitude) + 0.5f) - 0x3f000000));\n"
     "  }\n"
     "  const uint rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);\n"
     "  return (ushort)(sign | rounded >> 13);\n"
     "}\n"},
    {"bf16_to_float", false,
     "$Q float bf16_to_float(ushort bits) { return as_float((uint)bits << 16); }\n"},
    {"bf16_from_float", false,
     "// Rounds to nearest even.\n"
     "$Q ushort bf16_from_float(float x) {\n"
     "  const uint bits = as_uint(x);\n"
     "  return x == x ? (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : (ushort)0x7fc0;\n"
     "}\n"},
    {"f8e4m3_to_float", false,
     "$Q float f8e4m3_to_float(uchar bits) {\n"
     "  const uint magnitude = bits & 0x7f, sign = (uint)(bits & 0x80) << 24;\n"
     "  // A multiple of 2^-9 below the smallest normal number, and NaN is all ones.\n"
     "  const float number = magnitude < 8 ? magnitude * 0x1p-9f\n"
     "                                     : as_float((magnitude << 20) + (120u << 23));\n"
     "  return as_float(sign | (magnitude == 0x7f ? 0x7fc00000 : as_uint(number)));\n"
     "}\n"},
    {"f8e5m2_to_float", false,
     "$Q float f8e5m2_to_float(uchar bits) {\n"
     "  const uint magnitude = bits & 0x7f, sign = (uint)(bits & 0x80) << 24;\n"
     "  // A multiple of 2^-16 below the smallest normal number.\n"
     "  const float number = magnitude < 4 ? magnitude * 0x1p-16f\n"
     "                                     : as_float((magnitude << 21) + (112u << 23));\n"
     "  const uint special = magnitude >= 0x7c ? 0x7f800000 | magnitude << 21 : 0;\n"
     "  return as_float(sign | (special != 0 ? special : as_uint(number)));\n"
     "}\n"},
    {"f8e4m3_from_float", false,
     "// Rounds to nearest even; larger numbers become the largest one.\n"
     "$Q uchar f8e4m3_from_float(float x) {\n"
     "  const uint sign = as_uint(x) >> 24 & 0x80, magnitude = as_uint(x) & 0x7fffffff;\n"
     "  if (magnitude > 0x7f800000) return (uchar)(sign | 0x7f);\n"
     "  if (magnitude >= as_uint(448.0f)) return (uchar)(sign | 0x7e);\n"
     "  if (magnitude < as_uint(0x1p-6f)) {\n"
     "    return (uchar)(sign | (as_uint(as_float(magnitude) + 0x1p14f) - as_uint(0x1p14f)));\n"
     "  }\n"
     "  const uint rounded = magnitude + 0x7ffff + (magnitude >> 20 & 1) - (120u << 23);\n"
     "  return (uchar)(sign | rounded >> 20);\n"
     "}\n"},
    {"f8e5m2_from_float", false,
     "// Rounds to nearest even; larger numbers become the largest one, but for infinity.\n"
     "$Q uchar f8e5m2_from_float(float x) {\n"
     "  const uint sign = as_uint(x) >> 24 & 0x80, magnitude = as_uint(x) & 0x7fffffff;\n"
     "  if (magnitude > 0x7f800000) return (uchar)(sign | 0x7e);\n"
     "  if (magnitude == 0x7f800000) return (uchar)(sign | 0x7c);\n"
     "  if (magnitude >= as_uint(57344.0f)) return (uchar)(sign | 0x7b);\n"
     "  if (magnitude < as_uint(0x1p-14f)) {\n"
     "    return (uchar)(sign | (as_uint(as_float(magnitude) + 0x1p7f) - as_uint(0x1p7f)));\n"
     "  }\n"
     "  const uint rounded = magnitude + 0xfffff + (magnitude >> 21 & 1) - (112u << 23);\n"
     "  return (uchar)(sign | rounded >> 21);\n"
     "}\n"},
    {"round_f16", false,
     "$Q float round_f16(float x) { return f16_to_float(f16_from_float(x)); }\n"},
    {"round_bf16", false,
     "$Q float round_bf16(float x) { return bf16_to_float(bf16_from_float(x)); }\n"},
    {"round_f8e4m3", false,
     "$Q float round_f8e4m3(float x) { return f8e4m3_to_float(f8e4m3_from_float(x)); }\n"},
    {"round_f8e5m2", false,
     "$Q float round_f8e5m2(float x) { return f8e5m2_to_float(f8e5m2_from_float(x)); }\n"},
};

bool IsType(absl::string_view word) {
  return word == "int" || word == "long" || word == "float" || word == "double";
}

// For large y = -x / √2, erfc(y) amplifies the rounding error of y. So the product is computed in
// two parts, and the second one is applied with erfc'(y) = -2 / √π exp(-y²). $L ends the range in
// which the result is neither 0 nor 1; $C + $D is 1 / √2.
constexpr absl::string_view kNormalCdf =
    "// The CDF of the normal distribution, erfc(-x / sqrt(2)) / 2.\n"
    "$Q $T normal_cdf_$T($T x) {\n"
    "  if (x < -$L$F) return 0;\n"
    "  if (x > $L$F) return 1;\n"
    "  const $T y = -x * $C$F;\n"
    "  const $T rest = fma(-x, $C$F, -y) - x * $D$F;  // what rounding y has lost\n"
    "  return 0.5$F * (erfc(y) - 1.1283791670955126$F * exp(-y * y) * rest);\n"
    "}\n";

}  // namespace

std::string CPrelude::Use(absl::string_view base, absl::string_view type) {
  if (type == "double" || base == "odd_from_double") has_f64_ = true;
  const std::string name = type.empty() ? std::string(base) : absl::StrCat(base, "_", type);
  if (!used_.insert(name).second) return name;
  std::string text = dialect_.Define(name);
  if (text.empty() && base == "normal_cdf") text = std::string(kNormalCdf);
  for (const Definition& definition : kDefinitions) {
    if (!text.empty()) break;
    if (definition.name != base || definition.typed == type.empty()) continue;
    text = std::string(definition.text);
  }
  const bool is_float = type == "float", is_long = type == "long";
  text =
      absl::StrReplaceAll(text, {{"$Q", dialect_.FunctionQualifier()},
                                 {"$T", type},
                                 {"$U", is_long ? "ulong" : "uint"},
                                 {"$B", is_long ? "63" : "31"},
                                 {"$F", is_float ? "f" : ""},
                                 {"$L", is_float ? "15.0" : "40.0"},
                                 {"$C", is_float ? "0x1.6a09e6p-1" : "0x1.6a09e667f3bcdp-1"},
                                 {"$D", is_float ? "0x1.9fcef4p-27" : "-0x1.bdd3413b26456p-55"}});
  UseAllIn(text);
  absl::StrAppend(&functions_, text);
  return name;
}

void CPrelude::UseWord(const std::string& word) {
  if (used_.contains(word)) return;
  const size_t at = word.rfind('_');
  const absl::string_view base = absl::string_view(word).substr(0, at),
                          type =
                              at == std::string::npos ? "" : absl::string_view(word).substr(at + 1);
  if (!dialect_.Define(word).empty()) Use(word);
  for (const Definition& definition : kDefinitions) {
    if (definition.typed ? definition.name == base && IsType(type) : definition.name == word) {
      definition.typed ? Use(base, type) : Use(word);
    }
  }
}

std::string CPrelude::UseAllIn(std::string text) {
  const auto is_part = [](char c) {
    return absl::ascii_isalnum(static_cast<uint8_t>(c)) || c == '_';
  };
  for (auto word = text.begin(), end = word; word != text.end(); word = end) {
    word = std::find_if(word, text.end(), is_part);
    end = std::find_if_not(word, text.end(), is_part);
    UseWord(std::string(word, end));
  }
  return text;
}

std::string CPrelude::Text() const {
  const std::string prelude = dialect_.Prelude(has_f64_);
  return absl::StrCat(prelude, functions_, prelude.empty() && functions_.empty() ? "" : "\n");
}

}  // namespace hone::codegen
