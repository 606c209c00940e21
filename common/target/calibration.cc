#include "common/target/calibration.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace hone::target {
namespace {

// From half of what the fastest cores and GPUs need to ten times what microcontrollers need.
constexpr CalibrationField kFields[] = {
    {"fma", &Calibration::fma, 0.02, 1000, "a vector multiply-add"},
    {"fma_latency", &Calibration::fma_latency, 0.2, 1000, "a multiply-add that waits for another"},
    {"load", &Calibration::load, 0.02, 1000, "loading a vector from L1"},
    {"store", &Calibration::store, 0.02, 1000, "storing a vector to L1"},
    {"l2_line", &Calibration::l2_line, 0.05, 1000, "a line from L2"},
    {"l3_line", &Calibration::l3_line, 0.05, 2000, "a line from L3"},
    {"memory_line", &Calibration::memory_line, 0.1, 10000, "a line from memory"},
    {"memory_shared_line", &Calibration::memory_shared_line, 0.004, 10000,
     "a line from memory, for all cores together"},
    {"fork", &Calibration::fork, 10, 1e7, "a parallel loop"},
    {"launch", &Calibration::launch, 10, 1e8, "a launch of an empty kernel"},
};

absl::Status RefuseConstant(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("calibration: ", why));
}

}  // namespace

absl::Span<const CalibrationField> CalibrationFields() { return kFields; }

void Calibration::RemoveImpossible() {
  for (const CalibrationField& field : kFields) {
    double& value = this->*field.value;
    if (!(value >= field.min && value <= field.max)) value = 0;
  }
}

std::string Calibration::ToText() const {
  std::string text;
  for (const CalibrationField& field : kFields) {
    const double value = this->*field.value;
    if (value == 0) continue;
    absl::StrAppendFormat(&text, "%s%s:%.4g", text.empty() ? "" : ",", field.name, value);
  }
  return text;
}

absl::StatusOr<Calibration> Calibration::FromText(absl::string_view text) {
  Calibration calibration;
  if (text.empty()) return calibration;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(word, ':');
    const auto* const field = std::ranges::find(
        kFields, parts[0], [](const CalibrationField& each) { return each.name; });
    double value = 0;
    if (parts.size() != 2 || !absl::SimpleAtod(parts[1], &value))
      return RefuseConstant(absl::StrCat("'", word, "' is not of the form name:nanoseconds"));
    if (field == std::end(kFields))
      return RefuseConstant(absl::StrCat("there is no constant '", parts[0], "'"));
    if (!(value >= field->min && value <= field->max)) {  // true for NaN
      return RefuseConstant(absl::StrCat(field->name, "=", parts[1],
                                         " ns is impossible: ", field->meaning, " takes ",
                                         field->min, " to ", field->max, " ns"));
    }
    calibration.*field->value = value;
  }
  return calibration;
}

}  // namespace hone::target
