#include "client/cli/output/message_json.h"

#include <cmath>

#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace hone::cli {
namespace {

using google::protobuf::FieldDescriptor;

nlohmann::ordered_json ValueJson(const google::protobuf::Message& message,
                                 const FieldDescriptor* field) {
  const google::protobuf::Reflection& read = *message.GetReflection();
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
    default:
      return read.GetString(message, field);
  }
}

}  // namespace

nlohmann::ordered_json FieldsJson(const google::protobuf::Message& message,
                                  std::initializer_list<JsonField> fields) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  nlohmann::ordered_json json;
  for (const JsonField& each : fields) {
    json[each.key] = ValueJson(message, type.FindFieldByName(each.name));
  }
  if (fields.size() > 0) return json;
  for (int i = 0; i < type.field_count(); ++i) {
    json[type.field(i)->name()] = ValueJson(message, type.field(i));
  }
  return json;
}

}  // namespace hone::cli
