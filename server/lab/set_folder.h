#ifndef HONE_SERVER_LAB_SET_FOLDER_H_
#define HONE_SERVER_LAB_SET_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lab/recorded_set.h"

namespace hone::lab {

inline constexpr absl::string_view kSetSuffix = ".recorded";

// Returns the sorted names of the recorded sets in a folder. NotFound: the folder cannot be read,
// or has none.
absl::StatusOr<std::vector<std::string>> RecordedSetNames(const std::string& folder);

// Loads a set by name. NotFound: unknown name; the message lists the names. InvalidArgument: as for
// DecodeRecordedSet, with the path.
absl::StatusOr<RecordedSet> LoadRecordedSet(const std::string& folder, const std::string& name);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_SET_FOLDER_H_
