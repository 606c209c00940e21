#ifndef HONE_SERVER_JOB_ACTOR_JSON_FIELDS_H_
#define HONE_SERVER_JOB_ACTOR_JSON_FIELDS_H_

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/fields.h"
#include "nlohmann/json.hpp"

// Reads jobs that earlier releases stored as JSON. This form is no longer written.
namespace hone::job {

using Json = nlohmann::json;

inline bool IsJson(absl::string_view stored) { return !stored.empty() && stored[0] == '{'; }

// Parses without throwing. Returns a discarded value (is_discarded) if the text is not JSON.
inline Json ParseJson(absl::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// Sets *value if the JSON value has the right type. Never throws.
inline void Read(const Json& json, std::string* value) {
  if (json.is_string()) *value = json.get<std::string>();
}
inline void Read(const Json& json, bool* value) {
  if (json.is_boolean()) *value = json.get<bool>();
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
void Read(const Json& json, Number* value) {
  if (json.is_number()) *value = json.get<Number>();
}
template <typename Number>
void Read(const Json& json, std::vector<Number>* value) {
  if (!json.is_array()) return;
  for (const Json& element : json) {
    if (element.is_number()) value->push_back(element.get<Number>());
  }
}
inline void Read(const Json& json, absl::Duration* value) {
  if (json.is_number()) *value = absl::Milliseconds(json.get<int64_t>());
}
inline void Read(const Json& json, record::Outcome* value) {
  if (!json.is_string()) return;
  if (auto known = record::OutcomeFromName(json.get<std::string>()); known.ok()) *value = *known;
}
template <typename Value>
void Read(const Json& object, const char* name, Value* value) {
  if (auto found = object.find(name); found != object.end()) Read(*found, value);
}

// Visits the description of a struct (common/record/fields.h). A field that is missing or has
// another type keeps its default. A field may have any of its names. If there is no object for a
// nested struct, its fields are read from the enclosing object.
class JsonFields {
 public:
  explicit JsonFields(const Json& object) : object_(object) {}

  template <typename T>
  void operator()(const record::Field& field, std::optional<T>& value) {
    const Json* const found = Find(field);
    if (found != nullptr && found->is_object()) (*this)(field, value.emplace());
  }
  template <typename T>
  void operator()(const record::Field& field, T& value) {
    const Json* const found = Find(field);
    if constexpr (requires { VisitFields(value, *this); }) {
      JsonFields nested(found != nullptr && found->is_object() ? *found : object_);
      VisitFields(value, nested);
    } else if (found != nullptr) {
      Read(*found, &value);
    }
  }

 private:
  const Json* Find(const record::Field& field) const {
    for (const char* const name : {field.proto, field.json_name(), field.column_name()}) {
      if (const auto found = object_.find(name); found != object_.end()) return &*found;
    }
    return nullptr;
  }

  const Json& object_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_JSON_FIELDS_H_
