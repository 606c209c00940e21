#ifndef HONE_SERVER_LAB_PRESETS_H_
#define HONE_SERVER_LAB_PRESETS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lab/experiment.h"

namespace hone::lab {

// A comparison of the literature, or of our own, by name. NotFound: there is none; lists the names.
// Its sets are empty where it is on all of them.
absl::StatusOr<Experiment> FindPreset(absl::string_view name);
std::vector<std::string> PresetNames();

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_PRESETS_H_
