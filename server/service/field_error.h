#ifndef HONE_SERVER_SERVICE_FIELD_ERROR_H_
#define HONE_SERVER_SERVICE_FIELD_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace hone::service {

// Returns a readable name of a field, such as "cost model" for "cost_model", because users know the
// options of commands but not the protocol.
inline std::string FieldWords(absl::string_view field) {
  return absl::StrReplaceAll(field, {{"_", " "}, {".", " "}});
}

// Returns InvalidArgument with the name of a request's field.
inline absl::Status FieldError(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(FieldWords(field), ": ", why));
}

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_FIELD_ERROR_H_
