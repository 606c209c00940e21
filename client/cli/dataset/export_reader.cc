#include "client/cli/dataset/export_reader.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/dataset.h"
#include "common/record/origin.h"
#include "common/record/record.h"
#include "nlohmann/json.hpp"

namespace hone::cli {
namespace {

// Reads members of an object, and keeps the name of the first that is missing or of another type.
class Members {
 public:
  explicit Members(const nlohmann::json& object) : object_(object) {}

  const nlohmann::json& Of(const char* name, bool (nlohmann::json::*is)() const) {
    static const nlohmann::json kNone;
    const auto found = object_.find(name);
    if (found != object_.end() && ((*found).*is)()) return *found;
    if (bad_.empty()) bad_ = name;
    return kNone;
  }
  std::string Text(const char* name) {
    const nlohmann::json& text = Of(name, &nlohmann::json::is_string);
    return text.is_string() ? text.get<std::string>() : "";
  }
  double Number(const char* name) {
    const nlohmann::json& number = Of(name, &nlohmann::json::is_number);
    return number.is_number() ? number.get<double>() : 0;
  }
  int64_t Whole(const char* name) {
    const nlohmann::json& number = Of(name, &nlohmann::json::is_number_integer);
    return number.is_number_integer() ? number.get<int64_t>() : 0;
  }
  bool Flag(const char* name) {
    const nlohmann::json& flag = Of(name, &nlohmann::json::is_boolean);
    return flag.is_boolean() && flag.get<bool>();
  }
  const std::string& bad() const { return bad_; }

 private:
  const nlohmann::json& object_;
  std::string bad_;
};

absl::Status BadField(const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the field \"", name, "\" is missing or malformed"));
}

}  // namespace

bool IsExportHeader(const nlohmann::json& line) {
  return line.is_object() && line.contains("hone_records");
}

absl::Status ExportReader::Read(const TextLine& line) {
  const auto at_line = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("line ", line.number, ": ", status.message()));
  };
  if (line.is_too_long) {
    return at_line(absl::InvalidArgumentError(
        absl::StrCat("longer than ", kMostExportLineBytes >> 20, " MiB")));
  }
  if (line.text.empty()) return absl::OkStatus();
  const nlohmann::json json = nlohmann::json::parse(line.text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return at_line(absl::InvalidArgumentError("not a JSON object"));
  if (IsExportHeader(json)) {
    Members header(json);
    if (header.Whole("hone_records") != 1) {
      return at_line(absl::InvalidArgumentError("an export of another version"));
    }
    store_ = header.Text("store");
  } else if (json.contains("digest")) {
    Members text(json);
    texts_[text.Text("digest")] = text.Text("text");
    if (!text.bad().empty()) return at_line(BadField(text.bad()));
  } else if (json.contains("record")) {
    const absl::Status status = ReadRecord(json["record"]);
    if (absl::IsInvalidArgument(status)) return at_line(status);
    return status;
  } else if (json.contains("end")) {
    has_ended_ = true;
  } else {
    return at_line(absl::InvalidArgumentError("an unknown kind of line"));
  }
  return absl::OkStatus();
}

absl::Status ExportReader::ReadRecord(const nlohmann::json& json) {
  if (!json.is_object()) return BadField("record");
  Members fields(json);
  Members policy(fields.Of("policy", &nlohmann::json::is_object));
  Members environment(fields.Of("environment", &nlohmann::json::is_object));
  if (!fields.bad().empty()) return BadField(fields.bad());
  if (policy.Text("name") != "screen" || fields.Flag("is_default") || fields.Flag("quarantined")) {
    ++unsuitable_;
    return absl::OkStatus();
  }
  DatasetEntry entry;
  record::DatasetRecord& record = entry.record;
  const std::string outcome = fields.Text("outcome"), target = fields.Text("target"),
                    job = fields.Text("job"), space = fields.Text("space"),
                    proposer = fields.Text("proposer"), workload = fields.Text("workload");
  const record::MeasureResult result = {.latency_ns = fields.Number("latency_ns"),
                                        .reference_drift = fields.Number("reference_drift")};
  record.dispersion = fields.Number("dispersion");
  record.created_unix_ms = fields.Whole("created_unix_ms");
  for (const nlohmann::json& decision : fields.Of("decisions", &nlohmann::json::is_array)) {
    if (!decision.is_number_integer() || record.decisions.size() == record::kMostDatasetDecisions) {
      return BadField("decisions");
    }
    record.decisions.push_back(decision.get<int64_t>());
  }
  entry.task.tolerance = fields.Number("tolerance");
  entry.target.machine = environment.Text("cpu");
  for (const Members* members : {&fields, &environment, &policy}) {
    if (!members->bad().empty()) return BadField(members->bad());
  }
  HONE_ASSIGN_OR_RETURN(record.outcome, record::OutcomeFromName(outcome));
  if (record.outcome == record::Outcome::kOk) {
    record.latency_ns = record::SteadyLatencyNs(result);
    if (!(record.latency_ns > 0) || !std::isfinite(record.latency_ns)) {
      return BadField("latency_ns");
    }
  }
  const auto workload_text = texts_.find(workload), space_text = texts_.find(space);
  if (workload_text == texts_.end() || space_text == texts_.end()) {
    return absl::InvalidArgumentError("the text of its workload or space does not precede it");
  }
  entry.target.text = facts_.target_text ? facts_.target_text(target) : "";
  if (entry.target.text.empty()) entry.target.text = target;
  entry.task.workload = workload_text->second;
  if (facts_.network) entry.task.network = facts_.network(workload);
  entry.space = space_text->second;
  entry.source = proposer.empty() ? SourceOf(job) : absl::StrCat("proposed by ", proposer);
  return builder_->Add(entry);
}

std::string ExportReader::SourceOf(const std::string& job) const {
  if (record::IsImported(job)) return absl::StrCat("store ", job.substr(0, job.find('/')));
  const std::string known = facts_.source ? facts_.source(job) : "";
  return known.empty() ? absl::StrCat("store ", store_) : known;
}

absl::Status ExportReader::Finish() const {
  return has_ended_ ? absl::OkStatus()
                    : absl::InvalidArgumentError(
                          "the export is truncated: its last line is missing; export it again");
}

}  // namespace hone::cli
