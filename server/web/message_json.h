#ifndef HONE_SERVER_WEB_MESSAGE_JSON_H_
#define HONE_SERVER_WEB_MESSAGE_JSON_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

// The messages of the protocol as JSON for the page. Protobuf's own conversion takes several times
// as long, and writes 64-bit numbers as texts.
namespace hone::web {

// Appends a message as an object whose keys are the fields' names. Lists, maps and numbers are
// always written, messages only if they are set. NaN and infinity are null, enums are names.
void AppendJson(const google::protobuf::Message& message, std::string* out);
// Appends a text as JSON.
void AppendJson(absl::string_view text, std::string* out);

// Sets fields that are texts, numbers, flags or enums from their text forms; an empty text leaves
// a field unset. InvalidArgument: there is no such field, or the text is not a value of it.
absl::Status SetFields(const std::map<std::string, std::string>& values,
                       google::protobuf::Message& message);

}  // namespace hone::web

#endif  // HONE_SERVER_WEB_MESSAGE_JSON_H_
