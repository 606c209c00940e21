#ifndef HONE_SERVER_SERVICE_FIELD_ERROR_H_
#define HONE_SERVER_SERVICE_FIELD_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hone::service {

// Returns InvalidArgument for a field of a message, with the field's name in the protocol.
inline absl::Status FieldError(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_FIELD_ERROR_H_
