#ifndef HONE_COMMON_RECORD_MESSAGE_FIELDS_H_
#define HONE_COMMON_RECORD_MESSAGE_FIELDS_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/fields.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

// Conversion of structs that VisitFields describes to and from messages whose fields have the names
// of the description.
namespace hone::record {

// Returns the text as valid UTF-8 of at most `limit` bytes. Protobuf refuses to parse other bytes.
std::string CleanText(absl::string_view text, size_t limit);

// InvalidArgument: the value is not valid for the field; the message contains the field's name.
absl::Status CheckField(const Field& field, absl::string_view text);
absl::Status CheckField(const Field& field, double number);
absl::Status CheckField(const Field& field, int64_t number);

class MessageWriter {
 public:
  explicit MessageWriter(google::protobuf::Message& message) : message_(message) {}

  void operator()(const Field& field, const std::string& text) {
    const size_t limit = field.rule == Rule::kFree ? kMaxDetailBytes : text.size();
    Access().SetString(&message_, Find(field), CleanText(text, limit));
  }
  void operator()(const Field& field, int value) {
    Access().SetInt32(&message_, Find(field), value);
  }
  void operator()(const Field& field, int64_t value) {
    Access().SetInt64(&message_, Find(field), value);
  }
  void operator()(const Field& field, uint64_t value) {
    Access().SetUInt64(&message_, Find(field), value);
  }
  void operator()(const Field& field, double value) {
    Access().SetDouble(&message_, Find(field), value);
  }
  void operator()(const Field& field, bool value) {
    Access().SetBool(&message_, Find(field), value);
  }
  void operator()(const Field& field, Outcome value) {
    Access().SetEnumValue(&message_, Find(field), static_cast<int>(value));
  }
  void operator()(const Field& field, absl::Duration value) {
    (*this)(field, absl::ToInt64Milliseconds(value));
  }
  void operator()(const Field& field, const std::vector<int64_t>& values) {
    for (const int64_t value : values) Access().AddInt64(&message_, Find(field), value);
  }
  void operator()(const Field& field, const std::vector<double>& values) {
    for (const double value : values) Access().AddDouble(&message_, Find(field), value);
  }
  void operator()(const Field& field, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      Access().AddString(&message_, Find(field), CleanText(text, text.size()));
    }
  }
  template <typename T>
  void operator()(const Field& field, const std::vector<T>& list) {
    for (const T& nested : list) {
      MessageWriter writer(*Access().AddMessage(&message_, Find(field)));
      VisitFields(nested, writer);
    }
  }
  template <typename T>
  void operator()(const Field& field, const std::optional<T>& nested) {
    if (nested.has_value()) (*this)(field, *nested);
  }
  template <typename T>
  void operator()(const Field& field, const T& nested) {
    MessageWriter writer(*Access().MutableMessage(&message_, Find(field)));
    VisitFields(nested, writer);
  }

 private:
  const google::protobuf::Reflection& Access() const { return *message_.GetReflection(); }
  const google::protobuf::FieldDescriptor* Find(const Field& field) const {
    return message_.GetDescriptor()->FindFieldByName(field.proto);
  }

  google::protobuf::Message& message_;
};

// Reads every field and keeps the first error. Without `check`, all values are accepted, for
// messages that this program has written.
class MessageReader {
 public:
  MessageReader(const google::protobuf::Message& message, bool check)
      : message_(message), check_(check) {}

  void operator()(const Field& field, std::string& text) {
    text = Access().GetString(message_, Find(field));
    Check(field, absl::string_view(text));
  }
  void operator()(const Field& field, int& value) {
    value = Access().GetInt32(message_, Find(field));
    Check(field, int64_t{value});
  }
  void operator()(const Field& field, int64_t& value) {
    value = Access().GetInt64(message_, Find(field));
    Check(field, value);
  }
  void operator()(const Field& field, uint64_t& value) {
    value = Access().GetUInt64(message_, Find(field));
  }
  void operator()(const Field& field, double& value) {
    value = Access().GetDouble(message_, Find(field));
    Check(field, value);
  }
  void operator()(const Field& field, bool& value) {
    value = Access().GetBool(message_, Find(field));
  }
  void operator()(const Field& field, Outcome& value);  // an unknown outcome is an error
  void operator()(const Field& field, absl::Duration& value) {
    value = absl::Milliseconds(Access().GetInt64(message_, Find(field)));
  }
  void operator()(const Field& field, std::vector<int64_t>& values) {
    if (!TakeSize(field, values)) return;
    const auto* descriptor = Find(field);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = Access().GetRepeatedInt64(message_, descriptor, static_cast<int>(i));
    }
  }
  void operator()(const Field& field, std::vector<double>& values) {
    if (!TakeSize(field, values)) return;
    const auto* descriptor = Find(field);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = Access().GetRepeatedDouble(message_, descriptor, static_cast<int>(i));
      Check({.proto = field.proto, .rule = field.rule}, values[i]);
    }
  }
  void operator()(const Field& field, std::vector<std::string>& texts) {
    if (!TakeSize(field, texts)) return;
    for (size_t i = 0; i < texts.size(); ++i) {
      texts[i] = Access().GetRepeatedString(message_, Find(field), static_cast<int>(i));
      Check(field, absl::string_view(texts[i]));
    }
  }
  template <typename T>
  void operator()(const Field& field, std::vector<T>& list) {
    if (!TakeSize(field, list)) return;
    for (size_t i = 0; i < list.size(); ++i) {
      Read(field, Access().GetRepeatedMessage(message_, Find(field), static_cast<int>(i)), list[i]);
    }
  }
  template <typename T>
  void operator()(const Field& field, std::optional<T>& nested) {
    if (Access().HasField(message_, Find(field))) (*this)(field, nested.emplace());
  }
  template <typename T>
  void operator()(const Field& field, T& nested) {
    Read(field, Access().GetMessage(message_, Find(field)), nested);
  }

  const absl::Status& status() const { return status_; }

 private:
  const google::protobuf::Reflection& Access() const { return *message_.GetReflection(); }
  const google::protobuf::FieldDescriptor* Find(const Field& field) const {
    return message_.GetDescriptor()->FindFieldByName(field.proto);
  }
  template <typename T>
  void Read(const Field& field, const google::protobuf::Message& message, T& nested) {
    MessageReader reader(message, check_);
    VisitFields(nested, reader);
    if (status_.ok() && !reader.status_.ok()) {
      status_ = absl::Status(reader.status_.code(), std::string(field.proto) + "." +
                                                        std::string(reader.status_.message()));
    }
  }
  template <typename T>
  void Check(const Field& field, T value) {
    if (check_ && status_.ok()) status_ = CheckField(field, value);
  }
  template <typename T>
  bool TakeSize(const Field& field, std::vector<T>& values) {
    const int64_t size = Access().FieldSize(message_, Find(field));
    Check({.proto = field.proto, .rule = Rule::kCount, .most = field.most}, size);
    if (status_.ok()) values.resize(static_cast<size_t>(size));
    return status_.ok();
  }

  const google::protobuf::Message& message_;
  const bool check_;
  absl::Status status_;
};

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_MESSAGE_FIELDS_H_
