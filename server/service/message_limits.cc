#include "server/service/message_limits.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/const_init.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"
#include "server/service/field_error.h"

namespace hone::service {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fields with texts of many lines or for people, which are not names.
struct TextField {
  absl::string_view field;
  int max_bytes;
};
constexpr TextField kTexts[] = {
    {"hone.v1.CreateJobRequest.workload", 1 << 20},
    {"hone.v1.CreateJobRequest.space", 8 << 20},
    {"hone.v1.NetworkTask.workload", 1 << 20},
    {"hone.v1.LookupBestRequest.workload", 1 << 20},
    {"hone.v1.DescribeFeaturesRequest.trace", 8 << 20},
    {"hone.v1.DraftScheduleRequest.workload", 1 << 20},
    {"hone.v1.Capabilities.target", 64 << 10},
    {"hone.v1.MeasureResult.detail", 256 << 10},
    {"hone.v1.Environment.cpu", 4096},
    {"hone.v1.Environment.os", 4096},
    {"hone.v1.Environment.compiler", 4096},
};

// A field that must be checked: a text, a message or a list.
struct CheckedField {
  const FieldDescriptor* field;
  int max_bytes = kMaxNameBytes;
  bool is_name = true;  // a text without control characters
};

std::vector<CheckedField> CheckedFieldsOf(const google::protobuf::Descriptor& type) {
  std::vector<CheckedField> fields;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool text = field.type() == FieldDescriptor::TYPE_STRING;
    const bool message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!text && !message && !field.is_repeated()) continue;
    CheckedField& checked = fields.emplace_back(CheckedField{&field});
    for (const TextField& known : kTexts) {
      if (known.field != absl::string_view(field.full_name().data(), field.full_name().size())) {
        continue;
      }
      checked.max_bytes = known.max_bytes;
      checked.is_name = false;
    }
  }
  return fields;
}

// Returns the fields of a message type. They are looked up only once, because a worker's call
// contains dozens of messages.
const std::vector<CheckedField>& FieldsOf(const google::protobuf::Descriptor* type) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto& known =
      *new absl::node_hash_map<const google::protobuf::Descriptor*, std::vector<CheckedField>>();
  {
    absl::ReaderMutexLock lock(&mutex);
    if (auto found = known.find(type); found != known.end()) return found->second;
  }
  std::vector<CheckedField> fields = CheckedFieldsOf(*type);
  absl::MutexLock lock(&mutex);
  return known.try_emplace(type, std::move(fields)).first->second;
}

// Returns what is wrong with a text; "" if it is valid.
std::string WrongWith(const std::string& text, const CheckedField& checked) {
  if (text.size() > static_cast<size_t>(checked.max_bytes)) {
    return absl::StrCat(text.size(), " bytes; at most ", checked.max_bytes, " are allowed");
  }
  const bool control =
      checked.is_name && std::any_of(text.begin(), text.end(), [](unsigned char c) {
        return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
      });
  return control ? "it has a control character" : "";
}

// Returns what is wrong with a message, with the path of the field; "" if it is valid.
std::string WrongWith(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  for (const CheckedField& checked : FieldsOf(message.GetDescriptor())) {
    const FieldDescriptor& field = *checked.field;
    const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : -1;
    if (size > kMaxListEntries) {
      return absl::StrCat(FieldWords(field.name()), ": ", size, " entries; at most ",
                          kMaxListEntries, " are allowed");
    }
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (size == 0 || (size < 0 && is_message && !reflection.HasField(message, &field))) continue;
    if (!is_message && field.type() != FieldDescriptor::TYPE_STRING) continue;
    for (int i = 0; i < std::max(size, 1); ++i) {
      std::string wrong;
      if (is_message) {
        wrong = WrongWith(size < 0 ? reflection.GetMessage(message, &field)
                                   : reflection.GetRepeatedMessage(message, &field, i));
      } else {
        std::string scratch;
        wrong = WrongWith(size < 0
                              ? reflection.GetStringReference(message, &field, &scratch)
                              : reflection.GetRepeatedStringReference(message, &field, i, &scratch),
                          checked);
      }
      if (wrong.empty()) continue;
      return absl::StrCat(FieldWords(field.name()), size < 0 ? "" : absl::StrCat(" ", i + 1),
                          is_message ? " " : ": ", wrong);
    }
  }
  return "";
}

}  // namespace

absl::Status CheckMessage(const Message& message) {
  const std::string wrong = WrongWith(message);
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

}  // namespace hone::service
