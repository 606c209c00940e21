#include "common/target/target.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::target {
namespace {

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("target: ", why));
}

// Calls visit(word, value) for each field, in the order of the text form; for an integer
// visit(word, value, min, max).
template <typename T, typename Visitor>
void VisitFields(T& target, Visitor visit) {
  constexpr int64_t kMaxCache = int64_t{1} << 40;
  visit("kind", target.kind);
  visit("arch", target.arch);
  visit("triple", target.triple);
  visit("cpu", target.cpu);
  visit("features", target.features);
  visit("cores", target.cores, 1, 1 << 16);
  visit("vector_bits", target.vector_bits, 64, 1 << 16);
  visit("vector_registers", target.vector_registers, 1, 1024);
  visit("l1", target.l1_bytes, 1 << 10, kMaxCache);
  visit("l2", target.l2_bytes, 0, kMaxCache);
  visit("l3", target.l3_bytes, 0, kMaxCache);
  visit("line", target.cache_line_bytes, 8, 1 << 12);
  visit("calibration", target.calibration);
  if (target.kind == Kind::kCpu) return;
  visit("max_threads", target.gpu.max_threads, 1, 1 << 16);
  visit("shared", target.gpu.shared_bytes, 0, kMaxCache);
  visit("sub_group", target.gpu.sub_group, 1, 1 << 10);
  visit("registers", target.gpu.registers, 0, 1 << 16);
  visit("unit_threads", target.gpu.unit_threads, 1, 1 << 20);
  visit("unit_shared", target.gpu.unit_shared_bytes, 0, kMaxCache);
  visit("unit_registers", target.gpu.unit_registers, 0, int64_t{1} << 32);
  visit("has_shared", target.gpu.has_shared_memory);
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

absl::Status Parse(absl::string_view word, absl::string_view value, std::string& field) {
  if (!IsName(value)) return Refuse(absl::StrCat(word, "='", value, "' is not a name"));
  field = std::string(value);
  return absl::OkStatus();
}

absl::Status Parse(absl::string_view, absl::string_view value, std::vector<std::string>& field) {
  if (value.empty()) return absl::OkStatus();
  field = absl::StrSplit(value, ',');
  for (const std::string& feature : field) {
    if (IsName(feature)) continue;
    return Refuse(absl::StrCat("'", feature, "' is not the name of a feature"));
  }
  const bool sorted =
      std::ranges::adjacent_find(field, std::ranges::greater_equal()) == field.end();
  return sorted ? absl::OkStatus() : Refuse("features must be sorted, each once");
}

absl::Status Parse(absl::string_view, absl::string_view value, Calibration& field) {
  HONE_ASSIGN_OR_RETURN(field, Calibration::FromText(value));
  return absl::OkStatus();
}

constexpr absl::string_view kKindNames[] = {"cpu", "cuda", "opencl"};

absl::Status Parse(absl::string_view, absl::string_view value, Kind& field) {
  const auto* const found = std::ranges::find(kKindNames, value);
  if (found == std::end(kKindNames)) {
    return Refuse(absl::StrCat("kind='", value, "' is not one of cpu, cuda and opencl"));
  }
  field = static_cast<Kind>(found - kKindNames);
  return absl::OkStatus();
}

absl::Status Parse(absl::string_view word, absl::string_view value, bool& field) {
  if (value != "0" && value != "1") return Refuse(absl::StrCat(word, "=", value, " is not 0 or 1"));
  field = value == "1";
  return absl::OkStatus();
}

template <typename Integer>
absl::Status Parse(absl::string_view word, absl::string_view value, Integer& field, int64_t min,
                   int64_t max) {
  if (absl::SimpleAtoi(value, &field) && field >= min && field <= max) return absl::OkStatus();
  return Refuse(absl::StrCat(word, "=", value, " is not an integer in [", min, ", ", max, "]"));
}

std::string FieldText(const std::string& field) { return field; }
std::string FieldText(const std::vector<std::string>& field) { return absl::StrJoin(field, ","); }
template <typename Number>
std::string FieldText(Number field) {
  return absl::StrCat(static_cast<int64_t>(field));
}
std::string FieldText(const Calibration& field) { return field.ToText(); }
std::string FieldText(Kind field) { return std::string(KindName(field)); }

// Whether the text form leaves a field out. The kind of a CPU is left out, because targets did not
// have it from the beginning, and so is a calibration that was not made. Other fields are never
// left out.
template <typename Field>
bool IsLeftOut(const Field&) {
  return false;
}
bool IsLeftOut(const Calibration& field) { return field.empty(); }
bool IsLeftOut(Kind field) { return field == Kind::kCpu; }

constexpr absl::string_view kSm = "sm_";  // the prefix of CUDA's architectures

bool IsArchitecture(absl::string_view word) { return absl::StartsWith(word, kSm); }
// 90 for "sm_90a".
int CapabilityOf(absl::string_view architecture) {
  return std::atoi(std::string(absl::StripPrefix(architecture, kSm)).c_str());
}

std::string InstructionSet(const Target& target) {
  if (target.kind != Kind::kCpu) return std::string(KindName(target.kind));
  for (const absl::string_view feature : {"avx512f", "avx2", "sve", "neon"}) {
    if (target.HasFeature(feature)) return feature == "avx512f" ? "avx512" : std::string(feature);
  }
  return absl::StrCat("v", target.vector_bits);
}

}  // namespace

absl::string_view KindName(Kind kind) { return kKindNames[static_cast<int>(kind)]; }

bool Target::HasFeature(absl::string_view feature) const {
  if (kind == Kind::kCuda && IsArchitecture(feature)) {
    return IsArchitecture(cpu) && CapabilityOf(cpu) >= CapabilityOf(feature);
  }
  return std::ranges::binary_search(features, feature,
                                    [](absl::string_view a, absl::string_view b) { return a < b; });
}

std::string Target::Key() const {
  const std::string hash = DigestOf(KindText()).ToHex().substr(0, 8);
  return absl::StrCat(arch, "-", cpu, "-", InstructionSet(*this), "-", cores, "c-", hash);
}

std::string Target::KindText() const {
  if (calibration.empty()) return ToText();
  Target kind = *this;
  kind.calibration = {};
  return kind.ToText();
}

std::string Target::ToText() const {
  std::string text = "target";
  VisitFields(*this, [&](absl::string_view word, const auto& field, auto...) {
    if (!IsLeftOut(field)) absl::StrAppend(&text, " ", word, "=", FieldText(field));
  });
  return text;
}

absl::StatusOr<Target> Target::FromText(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(
      absl::StripAsciiWhitespace(text), absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  if (words.empty() || words[0] != "target") return Refuse("the text does not begin with 'target'");
  std::map<absl::string_view, absl::string_view> values;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == absl::string_view::npos) {
      return Refuse(absl::StrCat("'", words[i], "' is not of the form key=value"));
    }
    const absl::string_view word = words[i].substr(0, equals);
    if (!values.emplace(word, words[i].substr(equals + 1)).second) {
      return Refuse(absl::StrCat("'", word, "' is given twice"));
    }
  }
  Target target;
  absl::Status parsed;
  std::vector<absl::string_view> missing;
  VisitFields(target, [&](absl::string_view word, auto& field, auto... range) {
    const auto value = values.extract(word);
    if (value.empty() && IsLeftOut(field)) return;
    if (value.empty()) {
      missing.push_back(word);
    } else {
      parsed.Update(Parse(word, value.mapped(), field, range...));
    }
  });
  HONE_RETURN_IF_ERROR(parsed);
  if (!values.empty()) {
    return Refuse(absl::StrCat("unknown word '", values.begin()->first, "'"));
  }
  if (!missing.empty()) {
    return Refuse(absl::StrCat("missing ", absl::StrJoin(missing, ", ")));
  }
  return target;
}

}  // namespace hone::target
