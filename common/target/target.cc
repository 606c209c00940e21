#include "common/target/target.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/digest.h"

namespace hone::target {
namespace {

absl::Status Refuse(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("target: ", why));
}

// An integer of the text form: its key, its member and its valid range.
struct IntegerField {
  absl::string_view word;
  int Target::* small = nullptr;
  int64_t Target::* large = nullptr;
  int64_t min;
  int64_t max;
};

constexpr std::array<IntegerField, 7> kIntegers = {{
    {"cores", &Target::cores, nullptr, 1, 1 << 16},
    {"vector_bits", &Target::vector_bits, nullptr, 64, 1 << 16},
    {"vector_registers", &Target::vector_registers, nullptr, 1, 1024},
    {"l1", nullptr, &Target::l1_bytes, 1 << 10, int64_t{1} << 40},
    {"l2", nullptr, &Target::l2_bytes, 0, int64_t{1} << 40},
    {"l3", nullptr, &Target::l3_bytes, 0, int64_t{1} << 40},
    {"line", &Target::cache_line_bytes, nullptr, 8, 1 << 12},
}};

struct TextField {
  absl::string_view word;
  std::string Target::* value;
};
constexpr std::array<TextField, 3> kTexts = {
    {{"arch", &Target::arch}, {"triple", &Target::triple}, {"cpu", &Target::cpu}}};

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

absl::Status ParseFeatures(absl::string_view value, std::vector<std::string>& features) {
  if (value.empty()) return absl::OkStatus();
  for (const absl::string_view feature : absl::StrSplit(value, ',')) {
    if (!IsName(feature))
      return Refuse(absl::StrCat("'", feature, "' is not the name of a feature"));
    features.emplace_back(feature);
  }
  const auto out_of_order = std::ranges::adjacent_find(features, std::ranges::greater_equal());
  if (out_of_order != features.end()) {
    return Refuse("features must be sorted, each once");
  }
  return absl::OkStatus();
}

// Sets the field named `word`. NotFound: unknown field.
absl::Status SetField(Target& target, absl::string_view word, absl::string_view value) {
  if (word == "features") return ParseFeatures(value, target.features);
  for (const TextField& field : kTexts) {
    if (field.word != word) continue;
    if (!IsName(value)) return Refuse(absl::StrCat(word, "='", value, "' is no name"));
    target.*field.value = std::string(value);
    return absl::OkStatus();
  }
  for (const IntegerField& field : kIntegers) {
    if (field.word != word) continue;
    int64_t number = 0;
    if (!absl::SimpleAtoi(value, &number) || number < field.min || number > field.max) {
      return Refuse(absl::StrCat(word, "=", value, " is not an integer in [", field.min, ", ",
                                 field.max, "]"));
    }
    if (field.small != nullptr) {
      target.*field.small = static_cast<int>(number);
    } else {
      target.*field.large = number;
    }
    return absl::OkStatus();
  }
  return Refuse(absl::StrCat("unknown word '", word, "'"));
}

std::vector<absl::string_view> AllWords() {
  std::vector<absl::string_view> words;
  for (const TextField& field : kTexts) words.push_back(field.word);
  words.push_back("features");
  for (const IntegerField& field : kIntegers) words.push_back(field.word);
  return words;
}

std::string InstructionSet(const Target& target) {
  for (const absl::string_view feature : {"avx512f", "avx2", "sve", "neon"}) {
    if (target.HasFeature(feature)) return feature == "avx512f" ? "avx512" : std::string(feature);
  }
  return absl::StrCat("v", target.vector_bits);
}

}  // namespace

bool Target::HasFeature(absl::string_view feature) const {
  return std::ranges::binary_search(features, feature,
                                    [](absl::string_view a, absl::string_view b) { return a < b; });
}

std::string Target::Key() const {
  const std::string hash = DigestOf(ToText()).ToHex().substr(0, 8);
  return absl::StrCat(arch, "-", cpu, "-", InstructionSet(*this), "-", cores, "c-", hash);
}

std::string Target::ToText() const {
  std::string text = "target";
  for (const TextField& field : kTexts) {
    absl::StrAppend(&text, " ", field.word, "=", this->*field.value);
  }
  absl::StrAppend(&text, " features=", absl::StrJoin(features, ","));
  for (const IntegerField& field : kIntegers) {
    const int64_t value = field.small != nullptr ? this->*field.small : this->*field.large;
    absl::StrAppend(&text, " ", field.word, "=", value);
  }
  return text;
}

absl::StatusOr<Target> Target::FromText(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(
      absl::StripAsciiWhitespace(text), absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  if (words.empty() || words[0] != "target") return Refuse("the text does not begin with 'target'");
  Target target;
  std::vector<absl::string_view> missing = AllWords();
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == absl::string_view::npos) {
      return Refuse(absl::StrCat("'", words[i], "' is not of the form key=value"));
    }
    const absl::string_view word = words[i].substr(0, equals);
    if (absl::Status set = SetField(target, word, words[i].substr(equals + 1)); !set.ok()) {
      return set;
    }
    if (std::erase(missing, word) == 0) return Refuse(absl::StrCat("'", word, "' is given twice"));
  }
  if (!missing.empty()) {
    return Refuse(absl::StrCat("missing ", absl::StrJoin(missing, ", ")));
  }
  return target;
}

namespace {

Target PresetAvx2() {
  return Target{.cpu = "x86-64-v3",
                .features = {"avx", "avx2", "f16c", "fma"},
                .cores = 4,
                .vector_bits = 256,
                .vector_registers = 16,
                .l1_bytes = 32 << 10,
                .l2_bytes = 256 << 10,
                .l3_bytes = 8 << 20};
}

Target PresetAvx512() {
  return Target{.cpu = "skylake-avx512",
                .features = {"avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f",
                             "avx512vl", "f16c", "fma"},
                .cores = 4,
                .vector_bits = 512,
                .vector_registers = 32,
                .l1_bytes = 32 << 10,
                .l2_bytes = 1 << 20,
                .l3_bytes = 16 << 20};
}

struct Preset {
  absl::string_view name;
  Target (*make)();
};
constexpr std::array<Preset, 3> kPresets = {
    {{"native", DetectHost}, {"x86-avx2", PresetAvx2}, {"x86-avx512", PresetAvx512}}};

}  // namespace

absl::StatusOr<Target> TargetByName(absl::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.make();
  }
  return absl::NotFoundError(
      absl::StrCat("unknown target '", name, "'; known: ", absl::StrJoin(TargetNames(), ", ")));
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

}  // namespace hone::target
