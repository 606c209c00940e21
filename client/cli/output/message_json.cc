#include "client/cli/output/message_json.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"

namespace hone::cli {
namespace {

using google::protobuf::FieldDescriptor;

nlohmann::ordered_json ValueJson(const google::protobuf::Message& message,
                                 const FieldDescriptor* field) {
  const google::protobuf::Reflection& read = *message.GetReflection();
  if (field->is_repeated()) {
    const auto values = read.GetRepeatedFieldRef<double>(message, field);
    return std::vector<double>(values.begin(), values.end());
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return read.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_INT32:
      return read.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return read.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = read.GetDouble(message, field);
      return std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      // The names of an enum begin with the same words, and the first one ends in UNSPECIFIED.
      const absl::string_view words =
          absl::StripSuffix(field->enum_type()->value(0)->name(), "UNSPECIFIED");
      const google::protobuf::EnumValueDescriptor& value = *read.GetEnum(message, field);
      if (value.number() == 0) return "";
      return absl::AsciiStrToLower(absl::StripPrefix(value.name(), words));
    }
    default:
      return read.GetString(message, field);
  }
}

}  // namespace

nlohmann::ordered_json FieldsJson(const google::protobuf::Message& message,
                                  std::initializer_list<JsonField> fields) {
  nlohmann::ordered_json json;
  for (const JsonField& each : fields) {
    const google::protobuf::Message* owner = &message;
    std::vector<std::string> path = absl::StrSplit(each.name, '.');
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const FieldDescriptor* const part = owner->GetDescriptor()->FindFieldByName(path[i]);
      owner = &owner->GetReflection()->GetMessage(*owner, part);
    }
    json[each.key] = ValueJson(*owner, owner->GetDescriptor()->FindFieldByName(path.back()));
  }
  if (fields.size() > 0) return json;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    json[type.field(i)->name()] = ValueJson(message, type.field(i));
  }
  return json;
}

}  // namespace hone::cli
