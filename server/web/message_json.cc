#include "server/web/message_json.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"
#include "nlohmann/json.hpp"

namespace hone::web {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AppendNumber(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");
    return;
  }
  char digits[32];
  out->append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
}

// Appends the value of a field; of element `index` if it is repeated.
void AppendValue(const Message& message, const FieldDescriptor& field, int index,
                 std::string* out) {
  const Reflection& reflection = *message.GetReflection();
  const bool list = field.is_repeated();
  switch (field.cpp_type()) {
#define HONE_GET(Type)                                         \
  (list ? reflection.GetRepeated##Type(message, &field, index) \
        : reflection.Get##Type(message, &field))
    case FieldDescriptor::CPPTYPE_INT32:
      absl::StrAppend(out, HONE_GET(Int32));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      absl::StrAppend(out, HONE_GET(Int64));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      absl::StrAppend(out, HONE_GET(UInt32));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      absl::StrAppend(out, HONE_GET(UInt64));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      AppendNumber(HONE_GET(Double), out);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      AppendNumber(HONE_GET(Float), out);
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      out->append(HONE_GET(Bool) ? "true" : "false");
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      AppendJson(HONE_GET(Enum)->name(), out);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      AppendJson(HONE_GET(String), out);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      AppendJson(list ? reflection.GetRepeatedMessage(message, &field, index)
                      : reflection.GetMessage(message, &field),
                 out);
      break;
#undef HONE_GET
  }
}

void AppendList(const Message& message, const FieldDescriptor& field, std::string* out) {
  const int size = message.GetReflection()->FieldSize(message, &field);
  out->push_back(field.is_map() ? '{' : '[');
  for (int i = 0; i < size; ++i) {
    if (i > 0) out->push_back(',');
    if (field.is_map()) {
      // Every map of the protocol has texts as keys.
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      AppendValue(entry, *field.message_type()->map_key(), 0, out);
      out->push_back(':');
      AppendValue(entry, *field.message_type()->map_value(), 0, out);
    } else {
      AppendValue(message, field, i, out);
    }
  }
  out->push_back(field.is_map() ? '}' : ']');
}

// Returns whether the text is a value of the field, which is then set.
bool SetField(const std::string& text, const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  int32_t int32 = 0;
  int64_t int64 = 0;
  double number = 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      reflection.SetString(&message, &field, text);
      return true;
    case FieldDescriptor::CPPTYPE_INT32:
      if (!absl::SimpleAtoi(text, &int32)) return false;
      reflection.SetInt32(&message, &field, int32);
      return true;
    case FieldDescriptor::CPPTYPE_INT64:
      if (!absl::SimpleAtoi(text, &int64)) return false;
      reflection.SetInt64(&message, &field, int64);
      return true;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) return false;
      reflection.SetDouble(&message, &field, number);
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      if (text != "true" && text != "false") return false;
      reflection.SetBool(&message, &field, text == "true");
      return true;
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto* value = field.enum_type()->FindValueByName(text);
      if (value == nullptr) return false;
      reflection.SetEnum(&message, &field, value);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

void AppendJson(absl::string_view text, std::string* out) {
  using Json = nlohmann::json;
  out->append(Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void AppendJson(const Message& message, std::string* out) {
  const auto& type = *message.GetDescriptor();
  const Reflection& reflection = *message.GetReflection();
  char separator = '{';
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (!field.is_repeated() && field.has_presence() && !reflection.HasField(message, &field)) {
      continue;
    }
    // Bytes are not text, and the page has no use for them.
    if (field.type() == FieldDescriptor::TYPE_BYTES) continue;
    absl::StrAppend(out, std::string(1, separator), "\"", field.name(), "\":");
    separator = ',';
    if (field.is_repeated()) {
      AppendList(message, field, out);
    } else {
      AppendValue(message, field, 0, out);
    }
  }
  if (separator == '{') out->push_back('{');
  out->push_back('}');
}

absl::Status SetFields(const std::map<std::string, std::string>& values, Message& message) {
  for (const auto& [name, text] : values) {
    if (text.empty()) continue;
    const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr || field->is_repeated()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown parameter '", name, "'"));
    }
    if (!SetField(text, *field, message)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": '", text, "' is not a value of this parameter"));
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::web
