#include "common/record/proto_convert.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/message_fields.h"

namespace hone::record {
namespace {

// Error messages use words instead of field names, which users do not know.
absl::Status Refuse(const Field& field, absl::string_view why) {
  const std::string words = absl::StrReplaceAll(field.proto, {{"_", " "}, {".", " "}});
  return absl::InvalidArgumentError(absl::StrCat(words, ": ", why));
}

absl::Status CheckSize(const Field& field, absl::string_view text, size_t limit) {
  if (text.size() <= limit) return absl::OkStatus();
  return Refuse(field, absl::StrCat(text.size(), " bytes, at most ", limit, " allowed"));
}

// The length of the UTF-8 sequence at the front of `text`, 0 if there is none.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto continues = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

template <typename Message, typename T>
Message Write(const T& value) {
  Message message;
  MessageWriter writer(message);
  VisitFields(value, writer);
  return message;
}

// `what` precedes the names of fields in error messages.
template <typename T>
absl::StatusOr<T> Read(const google::protobuf::Message& message, absl::string_view what) {
  T value;
  MessageReader reader(message, /*check=*/true);
  VisitFields(value, reader);
  if (reader.status().ok()) return value;
  return absl::Status(reader.status().code(), absl::StrCat(what, reader.status().message()));
}

}  // namespace

std::string CleanText(absl::string_view text, size_t limit) {
  std::string clean;
  clean.reserve(std::min(text.size(), limit));
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (clean.size() + std::max<size_t>(length, 1) > limit) break;
    if (length == 0) {
      clean.push_back('?');
    } else {
      clean.append(text.data(), length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

absl::Status CheckField(const Field& field, absl::string_view text) {
  if (field.choices[0] != nullptr) {
    if (text == field.choices[0] || text == field.choices[1]) return absl::OkStatus();
    return Refuse(field, absl::StrCat("'", text.substr(0, 60), "' is neither ", field.choices[0],
                                      " nor ", field.choices[1]));
  }
  switch (field.rule) {
    case Rule::kName:
      return CheckSize(field, text, kMaxNameBytes);
    case Rule::kPath:
      return CheckSize(field, text, 4096);
    case Rule::kText:
      return CheckSize(field, text, kMaxTextBytes);
    case Rule::kFree:
      return CheckSize(field, text, kMaxDetailBytes);
    case Rule::kKey:
      return CheckSize(field, text, 64);
    case Rule::kSha256:
      if (text.empty() || IsSha256(text)) return absl::OkStatus();
      return Refuse(field,
                    absl::StrCat("'", text.substr(0, 64), "' is not 64 lower-case hex digits"));
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckField(const Field& field, double number) {
  if (field.rule == Rule::kAmount && (!std::isfinite(number) || number < 0)) {
    return Refuse(field, absl::StrCat(number, " is not a finite number ≥ 0"));
  }
  if (field.rule == Rule::kFinite && !std::isfinite(number)) {
    return Refuse(field, "not a finite number");
  }
  const bool limited = field.most != Field{.proto = ""}.most;
  if (limited && number > static_cast<double>(field.most)) {
    return Refuse(field, absl::StrCat(number, " is not in [0, ", field.most, "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckField(const Field& field, int64_t number) {
  if (field.rule != Rule::kCount || (number >= 0 && number <= field.most)) return absl::OkStatus();
  return Refuse(field, absl::StrCat(number, " is not in [0, ", field.most, "]"));
}

void MessageReader::operator()(const Field& field, Outcome& value) {
  const int number = Access().GetEnumValue(message_, Find(field));
  const absl::StatusOr<Outcome> known = FromProto(static_cast<v1::Outcome>(number));
  if (known.ok()) {
    value = *known;
  } else if (status_.ok()) {
    status_ = known.status();
  }
}

v1::Outcome ToProto(Outcome outcome) { return static_cast<v1::Outcome>(outcome); }
absl::StatusOr<Outcome> FromProto(v1::Outcome outcome) {
  if (outcome < v1::OUTCOME_OK || outcome > v1::OUTCOME_DEVICE_LOST) {
    return Refuse({.proto = "outcome"},
                  absl::StrCat("unknown outcome ", static_cast<int>(outcome)));
  }
  return static_cast<Outcome>(outcome);
}

v1::Policy ToProto(const Policy& value) { return Write<v1::Policy>(value); }
absl::StatusOr<Policy> FromProto(const v1::Policy& message) {
  return Read<Policy>(message, "policy ");
}

v1::Candidate ToProto(const Candidate& value) { return Write<v1::Candidate>(value); }
absl::StatusOr<Candidate> FromProto(const v1::Candidate& message) {
  return Read<Candidate>(message, "candidate ");
}

v1::BuildFacts ToProto(const BuildFacts& value) { return Write<v1::BuildFacts>(value); }
absl::StatusOr<BuildFacts> FromProto(const v1::BuildFacts& message) {
  return Read<BuildFacts>(message, "facts ");
}

v1::MachineState ToProto(const MachineState& value) { return Write<v1::MachineState>(value); }
absl::StatusOr<MachineState> FromProto(const v1::MachineState& message) {
  return Read<MachineState>(message, "machine ");
}

v1::MeasureResult ToProto(const MeasureResult& value) { return Write<v1::MeasureResult>(value); }
absl::StatusOr<MeasureResult> FromProto(const v1::MeasureResult& message) {
  return Read<MeasureResult>(message, "result ");
}

v1::Environment ToProto(const Environment& value) { return Write<v1::Environment>(value); }
absl::StatusOr<Environment> FromProto(const v1::Environment& message) {
  return Read<Environment>(message, "environment ");
}

v1::Record ToProto(const Record& value) { return Write<v1::Record>(value); }
absl::StatusOr<Record> FromProto(const v1::Record& message) {
  return Read<Record>(message, "record ");
}

v1::BuildRequest ToProto(const BuildRequest& value) { return Write<v1::BuildRequest>(value); }
absl::StatusOr<BuildRequest> FromProto(const v1::BuildRequest& message) {
  return Read<BuildRequest>(message, "");
}

v1::BuildResponse ToProto(const BuildResponse& value) { return Write<v1::BuildResponse>(value); }
absl::StatusOr<BuildResponse> FromProto(const v1::BuildResponse& message) {
  return Read<BuildResponse>(message, "");
}

v1::RunRequest ToProto(const RunRequest& value) { return Write<v1::RunRequest>(value); }
absl::StatusOr<RunRequest> FromProto(const v1::RunRequest& message) {
  return Read<RunRequest>(message, "");
}

}  // namespace hone::record
