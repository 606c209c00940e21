#ifndef HONE_CLIENT_CLI_OUTPUT_MESSAGE_JSON_H_
#define HONE_CLIENT_CLI_OUTPUT_MESSAGE_JSON_H_

#include <initializer_list>

#include "nlohmann/json.hpp"

namespace google::protobuf {
class Message;
}

namespace hone::cli {

// A field of a message, and its key in JSON, which is usually the name of the field.
struct JsonField {
  JsonField(const char* name, const char* key) : name(name), key(key) {}
  JsonField(const char* name) : JsonField(name, name) {}

  const char* name;
  const char* key;
};

// Returns these fields of a message as a JSON object, in this order and also if they have their
// default values; without a list, all fields. A name may be a path, such as "request.priority". A
// number that is not finite is null. A value of an enum is the rest of its name in lower case, such
// as "running", or "" if it is unspecified. REQUIRES: the message has the fields; they are numbers,
// texts, flags, enums, or lists of real numbers.
nlohmann::ordered_json FieldsJson(const google::protobuf::Message& message,
                                  std::initializer_list<JsonField> fields = {});

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_OUTPUT_MESSAGE_JSON_H_
