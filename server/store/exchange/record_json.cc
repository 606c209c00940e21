#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/fields.h"
#include "nlohmann/json.hpp"
#include "server/store/exchange/exchange.h"

namespace hone::store {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kLargest = int64_t{1} << 53;  // exact in every JSON reader
constexpr size_t kMaxListLength = 1 << 16;

// JSON has no numbers for NaN and infinities.
OrderedJson Number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string Dump(const OrderedJson& json) {
  return absl::StrCat(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace), "\n");
}

// Adds a record's fields to an object.
class FieldsToJson {
 public:
  explicit FieldsToJson(OrderedJson& object) : object_(object) {}

  void operator()(const record::Field& field, double value) {
    object_[field.json_name()] = Number(value);
  }
  void operator()(const record::Field& field, record::Outcome value) {
    object_[field.json_name()] = std::string(record::OutcomeName(value));
  }
  void operator()(const record::Field& field, const std::vector<double>& values) {
    OrderedJson& list = object_[field.json_name()] = OrderedJson::array();
    for (const double value : values) list.push_back(Number(value));
  }
  template <typename T>
  void operator()(const record::Field& field, const T& value) {
    if (field.by_store) return;
    if constexpr (requires(OrderedJson& json) { json = value; }) {
      object_[field.json_name()] = value;
    } else if (*field.json_name() == '\0') {
      VisitFields(value, *this);
    } else {
      OrderedJson nested = OrderedJson::object();
      FieldsToJson writer(nested);
      VisitFields(value, writer);
      object_[field.json_name()] = std::move(nested);
    }
  }

 private:
  OrderedJson& object_;
};

// Reads a record's fields from an object. Every other field of the object is an error. Keeps the
// first error.
class FieldsFromJson {
 public:
  FieldsFromJson(const nlohmann::json& json, std::string path)
      : json_(json), path_(std::move(path)) {
    if (!json.is_object()) Fail("", "is not an object");
  }

  void operator()(const record::Field& field, std::string& value) {
    const nlohmann::json* const json = Find(field);
    if (json == nullptr) return;
    if (!json->is_string()) return Fail(field, "is not a string");
    value = json->get<std::string>();
    const size_t limit =
        field.rule == record::Rule::kFree ? record::kMaxDetailBytes : record::kMaxNameBytes;
    if (value.size() > limit) return Fail(field, absl::StrCat("has more than ", limit, " bytes"));
    if (field.rule == record::Rule::kKey && !value.empty() && !Digest::FromHex(value).ok()) {
      return Fail(field, "is not a digest of 32 hex digits");
    }
    if (field.rule == record::Rule::kSha256 && !value.empty() && !IsSha256(value)) {
      return Fail(field, "is not a SHA-256 of 64 hex digits");
    }
    if (field.choices[0] != nullptr && value != field.choices[0] && value != field.choices[1]) {
      Fail(field, absl::StrCat("is neither ", field.choices[0], " nor ", field.choices[1]));
    }
  }
  void operator()(const record::Field& field, bool& value) {
    const nlohmann::json* const json = Find(field);
    if (json == nullptr) return;
    if (!json->is_boolean()) return Fail(field, "is neither true nor false");
    value = json->get<bool>();
  }
  template <std::integral Integer>
  void operator()(const record::Field& field, Integer& value) {
    if (field.by_store) return;
    const nlohmann::json* const json = Find(field);
    if (json == nullptr) return;
    const int64_t limit = std::min(field.most, kLargest);
    const bool too_large =
        json->is_number_unsigned() && json->get<uint64_t>() > static_cast<uint64_t>(limit);
    if (!json->is_number_integer() || too_large || json->get<int64_t>() < field.least) {
      return Fail(field, absl::StrCat("is not a whole number from ", field.least, " to ", limit));
    }
    value = json->get<Integer>();
  }
  void operator()(const record::Field& field, double& value) {
    const nlohmann::json* const json = Find(field);
    if (json != nullptr && !ReadNumber(*json, value)) Fail(field, "is not a number");
  }
  void operator()(const record::Field& field, record::Outcome& value) {
    std::string name;
    (*this)(field, name);
    if (!status_.ok()) return;
    const auto known = record::OutcomeFromName(name);
    if (!known.ok()) return Fail(field, absl::StrCat("is invalid: ", known.status().message()));
    value = *known;
  }
  void operator()(const record::Field& field, std::vector<double>& values) {
    if (!FindList(field, values)) return;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!ReadNumber(json_[field.json_name()][i], values[i])) {
        return Fail(field, "has an entry that is not a number");
      }
    }
  }
  void operator()(const record::Field& field, std::vector<int64_t>& values) {
    if (!FindList(field, values)) return;
    for (size_t i = 0; i < values.size(); ++i) {
      const nlohmann::json& item = json_[field.json_name()][i];
      const bool too_large = item.is_number_unsigned() &&
                             item.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
      if (!item.is_number_integer() || too_large) {
        return Fail(field, "has an entry that is not a whole number of 64 bits");
      }
      values[i] = item.get<int64_t>();
    }
  }
  template <typename T>
  void operator()(const record::Field& field, T& nested) {
    if (*field.json_name() == '\0') return VisitFields(nested, *this);
    const nlohmann::json* const json = Find(field);
    if (json == nullptr) return;
    FieldsFromJson reader(*json, absl::StrCat(path_, field.json_name(), "."));
    VisitFields(nested, reader);
    reader.CheckAllTaken();
    status_.Update(reader.status_);
  }

  void CheckAllTaken() {
    if (!json_.is_object()) return;
    for (const auto& [name, value] : json_.items()) {
      if (std::find(taken_.begin(), taken_.end(), name) == taken_.end()) {
        return Fail(name, "is not a field of this version");
      }
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  void Fail(absl::string_view name, absl::string_view why) {
    std::string full = absl::StrCat(path_, name);
    if (name.empty() && !full.empty()) full.pop_back();  // the dot after the object's name
    status_.Update(absl::InvalidArgumentError(
        absl::StrCat(full.empty() ? "it" : absl::StrCat("\"", full, "\""), " ", why)));
  }
  void Fail(const record::Field& field, absl::string_view why) { Fail(field.json_name(), why); }
  const nlohmann::json* Find(const record::Field& field) {
    taken_.push_back(field.json_name());
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(field.json_name());
    if (found != json_.end()) return &*found;
    Fail(field, "is missing");
    return nullptr;
  }
  template <typename T>
  bool FindList(const record::Field& field, std::vector<T>& values) {
    const nlohmann::json* const list = Find(field);
    if (list == nullptr) return false;
    if (!list->is_array() || list->size() > kMaxListLength) {
      Fail(field, absl::StrCat("is not a list of at most ", kMaxListLength));
      return false;
    }
    values.resize(list->size());
    return true;
  }
  static bool ReadNumber(const nlohmann::json& json, double& value) {
    if (json.is_number()) {
      value = json.get<double>();
    } else if (json.is_null()) {
      value = std::numeric_limits<double>::quiet_NaN();
    } else if (json == "inf" || json == "-inf") {
      value = json == "inf" ? std::numeric_limits<double>::infinity()
                            : -std::numeric_limits<double>::infinity();
    } else {
      return false;
    }
    return true;
  }

  const nlohmann::json& json_;
  const std::string path_;
  std::vector<std::string> taken_;
  absl::Status status_;
};

}  // namespace

std::string RecordLine(const record::Record& record) {
  OrderedJson line;
  FieldsToJson writer(line["record"] = OrderedJson::object());
  VisitFields(record, writer);
  return Dump(line);
}

absl::StatusOr<record::Record> RecordFromJson(const nlohmann::json& line) {
  record::Record record;
  FieldsFromJson reader(line, "");
  VisitFields(record, reader);
  reader.CheckAllTaken();
  HONE_RETURN_IF_ERROR(reader.status());
  return record;
}

std::string HeaderLine(const std::string& store) {
  return Dump({{"hone_records", kExportVersion}, {"store", store}});
}

std::string TextLine(const std::string& digest, const std::string& text) {
  return Dump({{"digest", digest}, {"text", text}});
}

std::string EndLine(int64_t texts, int64_t records, int64_t left_out) {
  return Dump({{"end", {{"texts", texts}, {"records", records}, {"left_out", left_out}}}});
}

}  // namespace hone::store
