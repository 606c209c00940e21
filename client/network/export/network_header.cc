#include "client/network/export/network_header.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/network/export/c_text.h"
#include "client/network/export/embedded_files.h"

namespace hone::network {
namespace {

// An embedded file with the name of a network.
std::string ForNetwork(absl::string_view file, const std::string& name) {
  for (const EmbeddedFile& embedded : EmbeddedFiles()) {
    if (embedded.name != file) continue;
    return absl::StrReplaceAll(
        embedded.content, {{"hone_network", name}, {"HONE_NETWORK", client::MacroPrefix(name)}});
  }
  return "";
}

// Makes a name safe within a comment or a string.
std::string InComment(const std::string& name) {
  return absl::StrReplaceAll(name, {{"*/", "* /"}, {"\n", " "}, {"\\", " "}, {"\"", "'"}});
}

std::string Macros(const std::string& prefix, absl::string_view kind, const Plan& plan,
                   absl::Span<const int> tensors) {
  std::string text = absl::StrFormat("#define %s_%sS %d\n", prefix, kind, tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const graph::TensorType& type = plan.tensors[tensors[i]].type;
    const std::string name = absl::StrCat(prefix, "_", kind, "_", i);
    absl::StrAppendFormat(&text, "/* %s, %s */\n", InComment(plan.tensors[tensors[i]].name),
                          type.ToText());
    absl::StrAppendFormat(&text, "#define %s_ELEMENTS INT64_C(%d)\n", name, type.elements());
    absl::StrAppendFormat(&text, "#define %s_BYTES INT64_C(%d)\n", name, type.bytes());
  }
  return text;
}

// Returns a comment on the values that the open dimension of a network may have, or "" if the
// network has none.
std::string SizesText(const Plan& plan, absl::string_view prefix) {
  if (plan.sizes.empty()) return "";
  std::vector<std::string> values;
  int64_t before = 0;
  for (const PlanSize& size : plan.sizes) {
    values.push_back(size.pads && size.value > before + 1
                         ? absl::StrCat(before + 1, " to ", size.value)
                         : absl::StrCat(size.value));
    before = size.value;
  }
  return absl::StrCat(prefix, InComment(plan.sizes[0].name), ": ", absl::StrJoin(values, ", "),
                      "; the shapes are those of ", before, "\n");
}

}  // namespace

std::string NetworkSignature(const Plan& plan, absl::string_view prefix) {
  std::string text;
  const auto add = [&](absl::string_view kind, absl::Span<const int> tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const PlanTensor& tensor = plan.tensors[tensors[i]];
      absl::StrAppend(&text, prefix, kind, " ", i, ": ", InComment(tensor.name), ", ",
                      tensor.type.ToText(), "\n");
    }
  };
  add("input", plan.OfLargest(plan.inputs));
  add("output", plan.OfLargest(plan.outputs));
  return absl::StrCat(text, SizesText(plan, prefix));
}

std::string NetworkHeader(const std::string& name, const Plan& plan) {
  const std::string prefix = client::MacroPrefix(name);
  const std::string end = absl::StrCat("#endif /* ", prefix, "_H_ */\n");
  std::string text = ForNetwork("hone_network.h", name);
  text.resize(text.size() - end.size());
  const std::string sizes = SizesText(plan, "");
  if (!sizes.empty()) absl::StrAppend(&text, "/* ", absl::StripSuffix(sizes, "\n"), " */\n");
  return absl::StrCat(text, Macros(prefix, "INPUT", plan, plan.OfLargest(plan.inputs)),
                      Macros(prefix, "OUTPUT", plan, plan.OfLargest(plan.outputs)), "\n", end);
}

std::string CppHeader(const std::string& name) { return ForNetwork("hone_network.hpp", name); }

std::string PythonModule(const std::string& name, const Plan& plan,
                         absl::Span<const std::pair<int64_t, std::string>> tails) {
  const std::string listed = absl::StrJoin(
      tails, ", ", [](std::string* text, const std::pair<int64_t, std::string>& tail) {
        absl::StrAppend(text, tail.first, ": \"", tail.second, "\"");
      });
  const std::string signature = absl::StrCat(
      NetworkSignature(plan, ""),
      tails.empty() ? ""
                    : "These outputs are read by nodes that run on the host. A call returns "
                      "the outputs of the model, in its order.\n");
  return absl::StrReplaceAll(
      ForNetwork("hone_network.py", name),
      {{"@SIGNATURE@\n", signature}, {"{}  # @TAILS@", absl::StrCat("{", listed, "}")}});
}

std::string ThreadsSource() {
  std::string source =
      "/* The threads of Hone's kernels: hone_threads, which the kernels' headers describe. C11; "
      "needs Linux\n * and, with glibc before 2.34, -pthread. */\n#define _GNU_SOURCE\n";
  for (const absl::string_view part : {"hone_runtime.h", "thread_pool.h", "thread_pool.c"}) {
    for (const EmbeddedFile& file : EmbeddedFiles()) {
      if (file.name != part) continue;
      for (const absl::string_view line : absl::StrSplit(file.content, '\n')) {
        if (absl::StartsWith(line, "#include \"common/") || line == "#define _GNU_SOURCE") continue;
        absl::StrAppend(&source, line, "\n");
      }
    }
  }
  return source;
}

std::string ThreadsObject(const std::string& arch) {
#ifdef __x86_64__
  const bool own = arch == "x86_64";
#else
  const bool own = arch == "aarch64";
#endif
  const std::string cross = absl::StrCat("thread_pool.", absl::AsciiStrToUpper(arch));
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    const bool is_own =
        absl::StartsWith(file.name, "thread_pool.c") && absl::EndsWith(file.name, ".o");
    if (own ? is_own : file.name == cross) return std::string(file.content);
  }
  return "";
}

}  // namespace hone::network
