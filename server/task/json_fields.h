#ifndef HONE_SERVER_TASK_JSON_FIELDS_H_
#define HONE_SERVER_TASK_JSON_FIELDS_H_

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/fields.h"
#include "nlohmann/json.hpp"

// Reads what earlier releases stored of jobs as JSON. Nothing is written in this form any more.
namespace hone::task {

using Json = nlohmann::json;

inline bool IsJson(absl::string_view stored) { return !stored.empty() && stored[0] == '{'; }

// Parses without throwing; a discarded value (is_discarded) when the text is not JSON.
inline Json ParseJson(absl::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// Reads *value when it is of the right type; else leaves it. Never throws.
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

// Visits the description of a struct (common/record/fields.h). A field that is missing or of
// another type keeps its default. A field may have any of its names; a struct that is not there as
// an object may have its fields in the object around it.
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

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JSON_FIELDS_H_
