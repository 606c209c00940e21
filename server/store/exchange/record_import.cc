#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/store/exchange/exchange.h"
#include "server/store/record_columns.h"

namespace hone::store {
namespace {

using Json = nlohmann::json;

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
