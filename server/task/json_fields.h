#ifndef HONE_SERVER_TASK_JSON_FIELDS_H_
#define HONE_SERVER_TASK_JSON_FIELDS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace hone::task {

using Json = nlohmann::json;

// Parses without throwing; a discarded value (is_discarded) when the text is not JSON.
inline Json ParseJson(absl::string_view text) {
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

// Reads object[name] into *value when it is there and of the right type; else leaves *value. Never
// throws.
inline void Read(const Json& object, const char* name, std::string* value) {
  if (auto it = object.find(name); it != object.end() && it->is_string())
    *value = it->get<std::string>();
}
inline void Read(const Json& object, const char* name, bool* value) {
  if (auto it = object.find(name); it != object.end() && it->is_boolean()) *value = it->get<bool>();
}
template <typename Number>
  requires std::is_arithmetic_v<Number>
void Read(const Json& object, const char* name, Number* value) {
  if (auto it = object.find(name); it != object.end() && it->is_number())
    *value = it->get<Number>();
}
template <typename Number>
void Read(const Json& object, const char* name, std::vector<Number>* value) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_array()) return;
  for (const Json& element : *it) {
    if (element.is_number()) value->push_back(element.get<Number>());
  }
}

// One line, shortest numbers that read back equal; bytes that are not UTF-8 are replaced.
inline std::string ToLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JSON_FIELDS_H_
