#include "server/service/message_limits.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"

namespace hone::service {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fields that hold texts of many lines, or for a person, and not names.
struct TextField {
  absl::string_view field;
  int max_bytes;
};
constexpr TextField kTexts[] = {
    {"hone.v1.CreateJobRequest.workload", 1 << 20},
    {"hone.v1.CreateJobRequest.space", 8 << 20},
    {"hone.v1.LookupBestRequest.workload", 1 << 20},
    {"hone.v1.DescribeFeaturesRequest.trace", 8 << 20},
    {"hone.v1.Capabilities.target", 64 << 10},
    {"hone.v1.MeasureResult.detail", 256 << 10},
    {"hone.v1.Environment.cpu", 4096},
    {"hone.v1.Environment.os", 4096},
    {"hone.v1.Environment.compiler", 4096},
};

const TextField* FindText(const FieldDescriptor& field) {
  for (const TextField& text : kTexts) {
    if (text.field == absl::string_view(field.full_name().data(), field.full_name().size())) {
      return &text;
    }
  }
  return nullptr;
}

class Checker {
 public:
  absl::Status Check(const Message& message) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> set;
    reflection.ListFields(message, &set);
    for (const FieldDescriptor* field : set) {
      const int size = field->is_repeated() ? reflection.FieldSize(message, field) : -1;
      if (size > kMaxListEntries) {
        way_.push_back(field->name());
        return Bad(absl::StrCat(size, " entries; at most ", kMaxListEntries, " are allowed"));
      }
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
          field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
        continue;
      }
      for (int i = 0; i < std::max(size, 1); ++i) {
        way_.push_back(size < 0 ? field->name() : absl::StrCat(field->name(), "[", i, "]"));
        if (absl::Status status = CheckOne(message, reflection, *field, size < 0 ? -1 : i);
            !status.ok()) {
          return status;
        }
        way_.pop_back();
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckOne(const Message& message, const Reflection& reflection,
                        const FieldDescriptor& field, int index) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return Check(index < 0 ? reflection.GetMessage(message, &field)
                             : reflection.GetRepeatedMessage(message, &field, index));
    }
    if (field.type() == FieldDescriptor::TYPE_BYTES) return absl::OkStatus();
    std::string scratch;
    const std::string& text =
        index < 0 ? reflection.GetStringReference(message, &field, &scratch)
                  : reflection.GetRepeatedStringReference(message, &field, index, &scratch);
    const TextField* known = FindText(field);
    const int limit = known == nullptr ? kMaxNameBytes : known->max_bytes;
    if (text.size() > static_cast<size_t>(limit)) {
      return Bad(absl::StrCat(text.size(), " bytes; at most ", limit, " are allowed"));
    }
    const bool control =
        known == nullptr && std::any_of(text.begin(), text.end(), [](unsigned char c) {
          return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
        });
    if (control) return Bad("it has a control character");
    return absl::OkStatus();
  }
  absl::Status Bad(absl::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(way_, "."), ": ", why));
  }

  std::vector<std::string> way_;
};

}  // namespace

absl::Status CheckMessage(const Message& message) { return Checker().Check(message); }

}  // namespace hone::service
