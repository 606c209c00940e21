#include "client/network/export/c_text.h"

#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hone::client {
namespace {

std::string CType(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF16:
      return "uint16_t /* IEEE half */";
    case ir::DType::kBF16:
      return "uint16_t /* bfloat16 */";
    case ir::DType::kF8E4M3:
      return "uint8_t /* OCP FP8 E4M3 */";
    case ir::DType::kF8E5M2:
      return "uint8_t /* OCP FP8 E5M2 */";
    case ir::DType::kF32:
      return "float";
    case ir::DType::kF64:
      return "double";
    case ir::DType::kI8:
      return "int8_t";
    case ir::DType::kU8:
    case ir::DType::kBool:
      return "uint8_t";
    case ir::DType::kI32:
      return "int32_t";
    case ir::DType::kI64:
      return "int64_t";
    case ir::DType::kI4:
      return "uint8_t /* two 4-bit integers, the first in the low bits */";
    case ir::DType::kU4:
      return "uint8_t /* two unsigned 4-bit integers, the first in the low bits */";
  }
  return "void";
}

// The strides of a dense row-major tensor, in elements.
std::vector<int64_t> Strides(const ir::Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// `name` is the prefix of the macros.
std::string BufferText(const std::string& name, const ir::Tensor& tensor, int index,
                       absl::string_view constant) {
  std::string text =
      absl::StrFormat("/* buffers[%d]: %s %s, %s%s */\n", index, tensor.output ? "output" : "input",
                      tensor.name, ir::TypeText(tensor.dtype, tensor.shape),
                      tensor.constant ? absl::StrCat("; ", constant) : "");
  absl::StrAppendFormat(&text, "#define %s_INDEX %d\n", name, index);
  absl::StrAppendFormat(&text, "#define %s_TYPE %s\n", name, CType(tensor.dtype));
  absl::StrAppendFormat(&text, "#define %s_RANK %d\n", name, tensor.shape.size());
  absl::StrAppendFormat(&text, "#define %s_SHAPE {%s}\n", name, absl::StrJoin(tensor.shape, ", "));
  absl::StrAppendFormat(&text, "#define %s_STRIDES {%s} /* in elements */\n", name,
                        absl::StrJoin(Strides(tensor.shape), ", "));
  absl::StrAppendFormat(&text, "#define %s_ELEMENTS INT64_C(%d)\n", name,
                        ir::ElementsOf(tensor.shape));
  absl::StrAppendFormat(&text, "#define %s_BYTES INT64_C(%d)\n\n", name, tensor.bytes());
  return text;
}

}  // namespace

std::string CIdentifier(absl::string_view text) {
  std::string identifier;
  for (const char c : text) identifier += absl::ascii_isalnum(c) ? c : '_';
  if (identifier.empty() || absl::ascii_isdigit(identifier[0])) identifier.insert(0, "_");
  return identifier;
}

std::string MacroPrefix(absl::string_view name) {
  if (absl::c_none_of(name, absl::ascii_isupper)) return absl::AsciiStrToUpper(name);
  if (absl::c_none_of(name, absl::ascii_islower)) return absl::AsciiStrToLower(name);
  return std::string(name);
}

std::string CommentLines(absl::string_view text) {
  std::string safe;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
    absl::StrAppend(&safe, " *   ", line, "\n");
  for (size_t at; (at = safe.find("*/")) != std::string::npos;) safe.replace(at, 2, "* /");
  return safe;
}

std::vector<ir::BufferId> BuffersOf(const ir::Workload& workload) {
  std::vector<ir::BufferId> buffers = workload.Inputs();
  for (const ir::BufferId id : workload.Outputs()) buffers.push_back(id);
  return buffers;
}

std::vector<std::string> BufferPrefixes(const std::string& prefix, const ir::Workload& workload) {
  std::vector<std::string> prefixes;
  std::set<std::string> names;
  for (const ir::BufferId id : BuffersOf(workload)) {
    std::string name =
        absl::StrCat(prefix, "_", absl::AsciiStrToUpper(CIdentifier(workload.tensors[id].name)));
    // Tensors "a" and "A" would get the same macros.
    while (!names.insert(name).second) absl::StrAppend(&name, "_", prefixes.size());
    prefixes.push_back(std::move(name));
  }
  return prefixes;
}

std::string MeasuredLine(double latency_ns, double gflops) {
  if (latency_ns <= 0) return "";
  const double us = latency_ns / 1e3;
  // Four significant digits, without an exponent.
  return absl::StrCat(" * Measured on this target: ",
                      us < 1e4 ? absl::StrFormat("%.4g", us) : absl::StrFormat("%.0f", us),
                      absl::StrFormat(" us, %.1f GFLOP/s.\n", gflops));
}

std::string BufferMacros(const std::string& prefix, const ir::Workload& workload,
                         absl::FunctionRef<std::string(size_t)> constant) {
  const std::vector<ir::BufferId> buffers = BuffersOf(workload);
  const std::vector<std::string> prefixes = BufferPrefixes(prefix, workload);
  std::string text;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ir::Tensor& tensor = workload.tensors[buffers[i]];
    absl::StrAppend(&text, BufferText(prefixes[i], tensor, static_cast<int>(i),
                                      tensor.constant ? constant(i) : ""));
  }
  return text;
}

}  // namespace hone::client
