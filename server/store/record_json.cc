#include "server/store/record_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone::store {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kLargest = int64_t{1} << 53;  // that every reader of JSON keeps exactly
constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxTextBytes = 64 << 10;
constexpr size_t kMaxListLength = 1 << 16;

// JSON has no number for these.
OrderedJson Number(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string Dump(const OrderedJson& json) {
  return absl::StrCat(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace), "\n");
}

// Takes the fields of an object one by one; what is left at the end is unknown. Keeps the first
// error.
class Fields {
 public:
  Fields(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) Fail("", "is not an object");
  }

  void Take(const char* name, std::string& value, size_t limit = kMaxNameBytes) {
    const nlohmann::json* const field = Find(name);
    if (field == nullptr) return;
    if (!field->is_string()) return Fail(name, "is not a text");
    value = field->get<std::string>();
    if (value.size() > limit) Fail(name, absl::StrCat("has more than ", limit, " bytes"));
  }
  void TakeDigest(const char* name, std::string& value, bool may_be_empty = true) {
    Take(name, value);
    if (!status_.ok() || (value.empty() && may_be_empty)) return;
    if (!Digest::FromHex(value).ok()) Fail(name, "is not a digest of 32 hex digits");
  }
  void Take(const char* name, bool& value) {
    const nlohmann::json* const field = Find(name);
    if (field == nullptr) return;
    if (!field->is_boolean()) return Fail(name, "is neither true nor false");
    value = field->get<bool>();
  }
  // A whole number of [0, limit].
  template <typename Integer>
  void TakeCount(const char* name, Integer& value, int64_t limit = kLargest) {
    const nlohmann::json* const field = Find(name);
    if (field == nullptr) return;
    if (!field->is_number_integer() ||
        (field->is_number_unsigned() && field->get<uint64_t>() > static_cast<uint64_t>(limit))) {
      return Fail(name, absl::StrCat("is not a whole number up to ", limit));
    }
    const int64_t number = field->get<int64_t>();
    if (number < 0 || number > limit) {
      return Fail(name, absl::StrCat("is not a whole number from 0 to ", limit));
    }
    value = static_cast<Integer>(number);
  }
  void Take(const char* name, double& value) {
    const nlohmann::json* const field = Find(name);
    if (field != nullptr && !ReadNumber(*field, value)) Fail(name, "is not a number");
  }
  void Take(const char* name, std::vector<double>& values) {
    const nlohmann::json* const field = FindList(name);
    if (field == nullptr) return;
    values.resize(field->size());
    for (size_t i = 0; i < values.size(); ++i) {
      if (!ReadNumber((*field)[i], values[i])) return Fail(name, "has what is not a number");
    }
  }
  void Take(const char* name, std::vector<int64_t>& values) {
    const nlohmann::json* const field = FindList(name);
    if (field == nullptr) return;
    values.resize(field->size());
    for (size_t i = 0; i < values.size(); ++i) {
      const nlohmann::json& item = (*field)[i];
      const bool too_large = item.is_number_unsigned() &&
                             item.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
      if (!item.is_number_integer() || too_large) {
        return Fail(name, "has what is not a whole number of 64 bits");
      }
      values[i] = item.get<int64_t>();
    }
  }
  // The fields of an object in this one.
  Fields Object(const char* name) {
    const nlohmann::json* const field = Find(name);
    static const auto* const nothing = new nlohmann::json(nlohmann::json::object());
    return Fields(field == nullptr ? *nothing : *field, absl::StrCat(path_, name, "."));
  }
  // Joins an object's errors, once all of it is taken.
  void Close(Fields& object) {
    object.CheckAllTaken();
    if (status_.ok()) status_ = object.status_;
  }

  void Fail(absl::string_view name, absl::string_view why) {
    if (status_.ok()) {
      const std::string full = absl::StrCat(path_, name);
      status_ = absl::InvalidArgumentError(
          absl::StrCat(full.empty() ? "it" : absl::StrCat("\"", full, "\""), " ", why));
    }
  }
  void CheckAllTaken() {
    if (!json_.is_object()) return;
    for (const auto& [name, value] : json_.items()) {
      if (std::find(taken_.begin(), taken_.end(), name) == taken_.end()) {
        return Fail(name, "is no field of this version");
      }
    }
  }
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json* Find(const char* name) {
    taken_.push_back(name);
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(name);
    if (found == json_.end()) {
      Fail(name, "is missing");
      return nullptr;
    }
    return &*found;
  }
  const nlohmann::json* FindList(const char* name) {
    const nlohmann::json* const field = Find(name);
    if (field == nullptr) return nullptr;
    if (field->is_array() && field->size() <= kMaxListLength) return field;
    Fail(name, absl::StrCat("is not a list of at most ", kMaxListLength));
    return nullptr;
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

void Read(Fields fields, Fields& parent, record::BuildFacts& facts) {
  fields.Take("compile_ms", facts.compile_ms);
  fields.Take("link_ms", facts.link_ms);
  fields.TakeCount("code_bytes", facts.code_bytes);
  fields.TakeCount("spills", facts.spills);
  fields.Take("loads_per_fma", facts.loads_per_fma);
  fields.TakeCount("workspace_bytes", facts.workspace_bytes);
  fields.TakeDigest("program", facts.program_digest);
  parent.Close(fields);
}

void Read(Fields fields, Fields& parent, record::MachineState& machine) {
  fields.Take("frequency_mhz", machine.frequency_mhz);
  fields.Take("temperature_c", machine.temperature_c);
  fields.Take("load", machine.load);
  fields.Take("steal", machine.steal);
  fields.TakeCount("remeasured", machine.remeasured, std::numeric_limits<int>::max());
  parent.Close(fields);
}

void Read(Fields fields, Fields& parent, record::Environment& environment) {
  fields.Take("cpu", environment.cpu, kMaxTextBytes);
  fields.Take("isa", environment.isa, kMaxTextBytes);
  fields.TakeCount("cores", environment.cores, 1 << 16);
  fields.Take("os", environment.os, kMaxTextBytes);
  fields.Take("governor", environment.governor, kMaxTextBytes);
  fields.Take("compiler", environment.compiler, kMaxTextBytes);
  fields.TakeCount("codegen_version", environment.codegen_version, std::numeric_limits<int>::max());
  fields.Take("hone_version", environment.hone_version, kMaxTextBytes);
  parent.Close(fields);
}

void Read(Fields fields, Fields& parent, record::Policy& policy) {
  fields.Take("name", policy.name);
  fields.Take("cache", policy.cache);
  fields.TakeCount("threads", policy.threads, 1 << 16);
  fields.TakeCount("repeats", policy.repeats, 1 << 16);
  fields.Take("confidence", policy.confidence);
  if (policy.name != "screen" && policy.name != "confirm") {
    fields.Fail("name", "is neither screen nor confirm");
  }
  if (policy.cache != "warm" && policy.cache != "flushed") {
    fields.Fail("cache", "is neither warm nor flushed");
  }
  parent.Close(fields);
}

}  // namespace

std::string RecordLine(const record::Record& record) {
  const record::MeasureResult& result = record.result;
  const record::BuildFacts& facts = result.facts;
  const record::MachineState& machine = result.machine;
  const record::Environment& environment = record.environment;
  OrderedJson samples = OrderedJson::array();
  for (const double sample : result.samples_ns) samples.push_back(Number(sample));
  return Dump({{"record",
                {{"workload", record.workload_digest},
                 {"operator", record.op},
                 {"target", record.target},
                 {"tolerance", Number(record.tolerance)},
                 {"policy",
                  {{"name", record.policy.name},
                   {"cache", record.policy.cache},
                   {"threads", record.policy.threads},
                   {"repeats", record.policy.repeats},
                   {"confidence", Number(record.policy.confidence)}}},
                 {"space", record.candidate.space_digest},
                 {"decisions", record.candidate.decisions},
                 {"outcome", std::string(record::OutcomeName(result.outcome))},
                 {"detail", result.detail},
                 {"latency_ns", Number(result.latency_ns)},
                 {"samples_ns", std::move(samples)},
                 {"dispersion", Number(result.dispersion)},
                 {"reference_drift", Number(result.reference_drift)},
                 {"stopped_early", result.stopped_early},
                 {"max_error", Number(result.max_error)},
                 {"artifact", result.artifact_digest},
                 {"facts",
                  {{"compile_ms", Number(facts.compile_ms)},
                   {"link_ms", Number(facts.link_ms)},
                   {"code_bytes", facts.code_bytes},
                   {"spills", facts.spills},
                   {"loads_per_fma", Number(facts.loads_per_fma)},
                   {"workspace_bytes", facts.workspace_bytes},
                   {"program", facts.program_digest}}},
                 {"machine",
                  {{"frequency_mhz", Number(machine.frequency_mhz)},
                   {"temperature_c", Number(machine.temperature_c)},
                   {"load", Number(machine.load)},
                   {"steal", Number(machine.steal)},
                   {"remeasured", machine.remeasured}}},
                 {"environment",
                  {{"cpu", environment.cpu},
                   {"isa", environment.isa},
                   {"cores", environment.cores},
                   {"os", environment.os},
                   {"governor", environment.governor},
                   {"compiler", environment.compiler},
                   {"codegen_version", environment.codegen_version},
                   {"hone_version", environment.hone_version}}},
                 {"job", record.job_id},
                 {"trial", record.trial},
                 {"created_unix_ms", record.created_unix_ms},
                 {"is_default", record.is_default},
                 {"quarantined", record.quarantined},
                 {"quarantine_reason", record.quarantine_reason}}}});
}

absl::StatusOr<record::Record> RecordFromJson(const nlohmann::json& line) {
  record::Record record;
  record::MeasureResult& result = record.result;
  Fields fields(line, "");
  fields.TakeDigest("workload", record.workload_digest, /*may_be_empty=*/false);
  fields.Take("operator", record.op);
  fields.Take("target", record.target);
  fields.Take("tolerance", record.tolerance);
  Read(fields.Object("policy"), fields, record.policy);
  fields.TakeDigest("space", record.candidate.space_digest, /*may_be_empty=*/false);
  fields.Take("decisions", record.candidate.decisions);
  std::string outcome;
  fields.Take("outcome", outcome);
  fields.Take("detail", result.detail, kMaxTextBytes);
  fields.Take("latency_ns", result.latency_ns);
  fields.Take("samples_ns", result.samples_ns);
  fields.Take("dispersion", result.dispersion);
  fields.Take("reference_drift", result.reference_drift);
  fields.Take("stopped_early", result.stopped_early);
  fields.Take("max_error", result.max_error);
  fields.TakeDigest("artifact", result.artifact_digest);
  Read(fields.Object("facts"), fields, result.facts);
  Read(fields.Object("machine"), fields, result.machine);
  Read(fields.Object("environment"), fields, record.environment);
  fields.Take("job", record.job_id);
  fields.TakeCount("trial", record.trial);
  fields.TakeCount("created_unix_ms", record.created_unix_ms);
  fields.Take("is_default", record.is_default);
  fields.Take("quarantined", record.quarantined);
  fields.Take("quarantine_reason", record.quarantine_reason, kMaxTextBytes);
  fields.CheckAllTaken();
  HONE_RETURN_IF_ERROR(fields.status());
  HONE_ASSIGN_OR_RETURN(result.outcome, record::OutcomeFromName(outcome));
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
