#include "server/store/exchange/exchange.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/record/fields.h"
#include "nlohmann/json.hpp"
#include "server/store/tables.h"

namespace hone::store {
namespace {

using Json = nlohmann::json;
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
  FieldsFromJson(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) Fail("", "is not an object");
  }

  void operator()(const record::Field& field, std::string& value) {
    const Json* const json = Find(field);
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
    const Json* const json = Find(field);
    if (json == nullptr) return;
    if (!json->is_boolean()) return Fail(field, "is neither true nor false");
    value = json->get<bool>();
  }
  template <std::integral Integer>
  void operator()(const record::Field& field, Integer& value) {
    if (field.by_store) return;
    const Json* const json = Find(field);
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
    const Json* const json = Find(field);
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
      const Json& item = json_[field.json_name()][i];
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
    const Json* const json = Find(field);
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
  const Json* Find(const record::Field& field) {
    taken_.push_back(field.json_name());
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(field.json_name());
    if (found != json_.end()) return &*found;
    Fail(field, "is missing");
    return nullptr;
  }
  template <typename T>
  bool FindList(const record::Field& field, std::vector<T>& values) {
    const Json* const list = Find(field);
    if (list == nullptr) return false;
    if (!list->is_array() || list->size() > kMaxListLength) {
      Fail(field, absl::StrCat("is not a list of at most ", kMaxListLength));
      return false;
    }
    values.resize(list->size());
    return true;
  }
  static bool ReadNumber(const Json& json, double& value) {
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

  const Json& json_;
  const std::string path_;
  std::vector<std::string> taken_;
  absl::Status status_;
};

constexpr int kPage = 200;   // records
constexpr int kDeepest = 8;  // maximum nesting of objects and lists

// Parses the object of a line, without exceptions and with limited nesting.
absl::StatusOr<Json> Parse(absl::string_view line) {
  int deepest = 0;
  const auto count = [&](int depth, Json::parse_event_t, Json&) {
    deepest = std::max(deepest, depth);
    return depth <= kDeepest;  // skips deeper values
  };
  Json json = Json::parse(line.begin(), line.end(), count, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return absl::InvalidArgumentError("is not a JSON object in UTF-8");
  }
  if (deepest > kDeepest) return absl::InvalidArgumentError("is nested too deeply");
  return json;
}

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

RecordExport::RecordExport(Store* store, RecordQuery query)
    : store_(store), query_(std::move(query)) {
  query_.page_size = kPage;
  query_.after_id = query_.before_id = 0;
  query_.newest_first = false;
}

absl::StatusOr<bool> RecordExport::AddText(const std::string& digest, std::string& lines) {
  if (const auto known = texts_.find(digest); known != texts_.end()) return known->second;
  const absl::StatusOr<std::string> text = store_->GetText(digest);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  texts_[digest] = text.ok();
  if (!text.ok()) return false;
  absl::StrAppend(&lines, TextLine(digest, *text));
  ++text_lines_;
  return true;
}

absl::StatusOr<std::string> RecordExport::Next() {
  if (ended_) return std::string();
  std::string lines;
  if (!begun_) {
    HONE_ASSIGN_OR_RETURN(const std::string identity, store_->Identity());
    lines = HeaderLine(identity);
    begun_ = true;
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store_->Query(query_));
  for (const record::Record& record : page) {
    query_.after_id = record.id;
    HONE_ASSIGN_OR_RETURN(const bool workload, AddText(record.workload_digest, lines));
    HONE_ASSIGN_OR_RETURN(const bool space, AddText(record.candidate.space_digest, lines));
    if (!workload || !space) {
      ++left_out_;  // it could not be replayed
      continue;
    }
    absl::StrAppend(&lines, RecordLine(record));
    ++records_;
  }
  if (page.size() < static_cast<size_t>(kPage)) {
    absl::StrAppend(&lines, EndLine(text_lines_, records_, left_out_));
    ended_ = true;
  }
  return lines;
}

RecordImport::RecordImport(CheckWorkload check_workload)
    : check_workload_(std::move(check_workload)) {}

absl::Status RecordImport::AtLine(int64_t line, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("line ", line, ": ", status.message()));
}

absl::Status RecordImport::Feed(absl::string_view bytes) {
  bytes_ += static_cast<int64_t>(bytes.size());
  if (bytes_ > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kMaxBytes >> 20,
                     " MiB at once: export and import in parts, by operator or "
                     "time, or merge the store files"));
  }
  while (true) {
    const size_t end = bytes.find('\n');
    if (end == absl::string_view::npos) break;
    const absl::string_view piece = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    ++line_;
    if (rest_.empty()) {
      HONE_RETURN_IF_ERROR(AtLine(line_, ReadLine(piece)));
    } else {
      absl::StrAppend(&rest_, piece);
      const std::string line = std::exchange(rest_, "");
      HONE_RETURN_IF_ERROR(AtLine(line_, ReadLine(line)));
    }
  }
  absl::StrAppend(&rest_, bytes);
  if (static_cast<int64_t>(rest_.size()) > kMaxLineBytes) {
    return AtLine(line_ + 1, absl::InvalidArgumentError(
                                 absl::StrCat("is longer than ", kMaxLineBytes >> 20, " MiB")));
  }
  return absl::OkStatus();
}

absl::Status RecordImport::ReadLine(absl::string_view line) {
  if (static_cast<int64_t>(line.size()) > kMaxLineBytes) {
    return absl::InvalidArgumentError(absl::StrCat("is longer than ", kMaxLineBytes >> 20, " MiB"));
  }
  HONE_ASSIGN_OR_RETURN(const Json json, Parse(line));
  if (!header_) return ReadHeader(json);
  if (end_) return absl::InvalidArgumentError("comes after the last line");
  if (json.contains("end")) return ReadEnd(json);
  if (json.contains("digest")) return ReadText(json);
  if (!json.contains("record") || json.size() != 1) {
    return absl::InvalidArgumentError("is neither a text, a record nor the end");
  }
  HONE_ASSIGN_OR_RETURN(record::Record record, RecordFromJson(json["record"]));
  HONE_RETURN_IF_ERROR(CheckRecord(record));
  batch_.records.push_back(std::move(record));
  batch_.where.push_back(absl::StrCat("line ", line_));
  return absl::OkStatus();
}

absl::Status RecordImport::ReadHeader(const Json& json) {
  const auto version = json.find("hone_records");
  if (version == json.end() || !version->is_number_integer()) {
    return absl::InvalidArgumentError(
        "is not the first line of an export, which is {\"hone_records\": 1, …}");
  }
  if (*version != kExportVersion) {
    return absl::InvalidArgumentError(absl::StrCat("is from an export of version ", version->dump(),
                                                   "; this server reads version ", kExportVersion));
  }
  const auto store = json.find("store");
  if (store == json.end() || !store->is_string() || store->get<std::string>().empty() ||
      store->get<std::string>().size() > 64) {
    return absl::InvalidArgumentError("does not name its store");
  }
  batch_.origin = store->get<std::string>();
  header_ = true;
  return absl::OkStatus();
}

absl::Status RecordImport::ReadText(const Json& json) {
  const auto digest = json.find("digest");
  const auto text = json.find("text");
  if (json.size() != 2 || text == json.end() || !digest->is_string() || !text->is_string()) {
    return absl::InvalidArgumentError("is not a digest with its text");
  }
  const std::string name = digest->get<std::string>();
  HONE_RETURN_IF_ERROR(Digest::FromHex(name).status());
  if (!batch_.texts.emplace(name, text->get<std::string>()).second) {
    return absl::InvalidArgumentError(absl::StrCat("the text ", name, " comes twice"));
  }
  text_at_[name] = line_;
  ++text_lines_;
  return absl::OkStatus();
}

absl::Status RecordImport::ReadEnd(const Json& json) {
  const Json& end = json["end"];
  const auto says = [&](const char* name, int64_t count) {
    return end.is_object() && end.contains(name) && end[name].is_number_integer() &&
           end[name] == count;
  };
  if (!says("texts", text_lines_) ||
      !says("records", static_cast<int64_t>(batch_.records.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("says ", end.dump(), ", but ", text_lines_,
                                                   " texts and ", batch_.records.size(),
                                                   " records precede it"));
  }
  end_ = true;
  return absl::OkStatus();
}

absl::StatusOr<ImportBatch> RecordImport::Finish() && {
  if (!rest_.empty() || !end_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", line_ + 1, ": the last line, {\"end\": …}, is missing: the export was cut short"));
  }
  std::set<std::string> workloads;
  for (const record::Record& record : batch_.records) workloads.insert(record.workload_digest);
  for (const auto& [digest, text] : batch_.texts) {
    if (workloads.contains(digest)) {
      HONE_RETURN_IF_ERROR(AtLine(text_at_[digest], check_workload_(digest, text)));
    } else if (DigestOf(text).ToHex() != digest) {
      return AtLine(text_at_[digest],
                    absl::InvalidArgumentError("the text does not match its digest"));
    }
  }
  return std::move(batch_);
}

}  // namespace hone::store
