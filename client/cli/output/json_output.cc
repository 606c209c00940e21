#include "client/cli/output/json_output.h"

#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/phase_text.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/signals.h"
#include "common/record/processes.h"
#include "common/record/proto_convert.h"
#include "common/target/calibration.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"

namespace hone::cli {
namespace {

using google::protobuf::FieldDescriptor;

nlohmann::ordered_json ValueJson(const google::protobuf::Message& message,
                                 const FieldDescriptor* field) {
  const google::protobuf::Reflection& read = *message.GetReflection();
  if (field->is_repeated()) {
    const auto values = read.GetRepeatedFieldRef<double>(message, field);
    return std::vector<double>(values.begin(), values.end());
  }
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
    case FieldDescriptor::CPPTYPE_ENUM: {
      // The names of an enum begin with the same words, and the first one ends in UNSPECIFIED.
      const absl::string_view words =
          absl::StripSuffix(field->enum_type()->value(0)->name(), "UNSPECIFIED");
      const google::protobuf::EnumValueDescriptor& value = *read.GetEnum(message, field);
      if (value.number() == 0) return "";
      return absl::AsciiStrToLower(absl::StripPrefix(value.name(), words));
    }
    default:
      return read.GetString(message, field);
  }
}

constexpr char kPrinted[] = "hone.cli/printed-as-json";  // marks an error that was printed

// The best of a job's own candidates; null if it is not known.
Json OwnBestJson(const v1::Job& job) {
  Json own_best = LatencyJson(job.own_best());
  if (own_best.is_null()) return own_best;
  const int64_t id = job.own_best().record().id();  // 0: not stored
  own_best["record"] = id > 0 ? Json(id) : Json(nullptr);
  own_best["confirmed"] = client::LatencyIsConfirmed(job.own_best());
  own_best["processes"] = job.own_best().processes();
  if (job.own_best().record().quarantined()) {
    own_best["quarantine_reason"] = job.own_best().record().quarantine_reason();
  }
  return own_best;
}

Json SecondsJson(absl::Duration duration) {
  return duration < absl::InfiniteDuration() ? Json(absl::ToDoubleSeconds(duration))
                                             : Json(nullptr);
}

}  // namespace

nlohmann::ordered_json FieldsJson(const google::protobuf::Message& message,
                                  std::initializer_list<JsonField> fields) {
  nlohmann::ordered_json json;
  for (const JsonField& each : fields) {
    const google::protobuf::Message* owner = &message;
    std::vector<std::string> path = absl::StrSplit(each.name, '.');
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const FieldDescriptor* const part = owner->GetDescriptor()->FindFieldByName(path[i]);
      owner = &owner->GetReflection()->GetMessage(*owner, part);
    }
    json[each.key] = ValueJson(*owner, owner->GetDescriptor()->FindFieldByName(path.back()));
  }
  if (fields.size() > 0) return json;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    json[type.field(i)->name()] = ValueJson(message, type.field(i));
  }
  return json;
}

Json PinnedJson(const v1::Best& best) {
  if (best.pinned_unix_ms() == 0) return nullptr;
  return {{"by", best.pinned_by()}, {"unix_ms", best.pinned_unix_ms()}};
}

Json ToJson(const record::Record& record) {
  const record::MeasureResult& result = record.result;
  return {
      {"record", record.id},
      {"operator", record.op},
      {"workload_digest", record.workload_digest},
      {"target", record.target},
      {"tolerance", record.tolerance},
      {"policy", record.policy.Key()},
      {"inputs", result.inputs},
      {"outcome", std::string(record::OutcomeName(result.outcome))},
      {"detail", result.detail},
      {"latency_ns", record::SteadyLatencyNs(result)},
      {"raw_latency_ns", result.latency_ns},
      {"processes", record::ProcessesOf(result)},
      {"dispersion", result.dispersion},
      {"samples_ns", result.samples_ns},
      {"max_error", result.max_error},
      {"compile_ms", result.facts.compile_ms},
      {"space_digest", record.candidate.space_digest},
      {"decisions", record.candidate.decisions},
      {"artifact_digest", result.artifact_digest},
      {"job", record.job_id},
      {"trial", record.trial == record::kNoTrial ? Json(nullptr) : Json(record.trial)},
      {"measured_unix_ms", record.created_unix_ms},
      {"is_default", record.is_default},
      {"proposer", record.proposer},
      {"quarantined", record.quarantined},
      {"quarantine_reason", record.quarantine_reason},
      {"machine", FieldsJson(record::ToProto(result.machine))},
      {"environment", FieldsJson(record::ToProto(record.environment))},
  };
}

Json ToJson(const v1::WorkerInfo& worker) {
  Json json = FieldsJson(worker, {{"id", "worker"},
                                  "host",
                                  "target",
                                  "connected",
                                  "can_build",
                                  "can_run",
                                  "leases",
                                  "peak_gflops",
                                  "peak_gflops_one_core",
                                  "read_gbps",
                                  "last_seen_unix_ms",
                                  "last_error",
                                  "draining",
                                  "stopping",
                                  "silent",
                                  "flagged",
                                  "memory_bytes",
                                  "accelerator"});
  json["environment"] = FieldsJson(worker.facts());
  json["calibration_ns"] = CalibrationJson(worker.calibration());
  return json;
}

Json CalibrationJson(const std::string& text) {
  Json json = Json::object();
  const absl::StatusOr<target::Calibration> calibration = target::Calibration::FromText(text);
  if (!calibration.ok()) return json;
  for (const target::CalibrationField& field : target::CalibrationFields()) {
    const double value = *calibration.*field.value;
    if (value > 0) json[std::string(field.name)] = value;
  }
  return json;
}

Json ToJson(const v1::StoredModel& model) {
  Json metrics = Json::parse(model.metrics(), nullptr, /*allow_exceptions=*/false);
  if (metrics.is_discarded()) metrics = nullptr;
  Json json = FieldsJson(model, {{"id", "stored_model"},
                                 {"name", "model"},
                                 "feature_set",
                                 "target",
                                 "operator",
                                 "version",
                                 {"records", "record_count"},
                                 {"workloads", "workload_count"},
                                 "created_unix_ms",
                                 {"size_bytes", "bytes"},
                                 "origin",
                                 "in_use"});
  json["metrics"] = std::move(metrics);
  return json;
}

Json LatencyJson(const v1::Best& best) {
  if (!(best.latency_ns() > 0)) return nullptr;
  return FieldsJson(best, {"latency_ns", "gflops"});
}

Json JobBestJson(const v1::Job& job) {
  Json best = LatencyJson(job.best());
  if (best.is_null()) return best;
  best["confirmed"] = client::LatencyIsConfirmed(job.best());
  if (client::BestIsWithdrawn(job)) {
    best["quarantine_reason"] = job.best().record().quarantine_reason();
  }
  best["job"] = job.best().record().job_id();
  if (!job.best().record().proposer().empty()) {
    best["proposer"] = job.best().record().proposer();
  }
  best["measured_unix_ms"] = job.best().record().created_unix_ms();
  // The best of a running job is the leader of its search, which has no stored record. The number
  // of its processes is not final before the job ends.
  if (job.best().record().id() > 0) best["processes"] = job.best().processes();
  return best;
}

Json DefaultJson(const v1::Job& job) {
  Json json = LatencyJson(job.default_schedule());
  if (!json.is_null()) json["confirmed"] = job.default_confirmed();
  return json;
}

Json ToJson(const v1::Job& job) {
  const JobProgress progress = ProgressOf(job);
  Json json = FieldsJson(job, {{"id", "job"},
                               "state",
                               "owner",
                               {"request.priority", "priority"},
                               "error",
                               "workload",
                               "workload_digest",
                               "target",
                               "trials",
                               {"request.max_trials", "max_trials"},
                               {"request.max_time_ms", "max_time_ms"}});
  json["outcomes"] = client::OutcomesOf(job);
  json.update(FieldsJson(job, {"dropped", "queued", "disturbed"}));
  json["phase"] = PhaseText(job);
  json.update(FieldsJson(job, {"wait_reason"}));
  json["left_s"] = SecondsJson(client::TimeLeft(job));
  json["progress"] = progress.share.has_value() ? Json(*progress.share) : Json(nullptr);
  json["estimated_left_s"] = SecondsJson(progress.left);
  json.update(FieldsJson(job, {"note", "created_unix_ms"}));
  json["wall_s"] = static_cast<double>(job.wall_ms()) / 1e3;
  json["best"] = JobBestJson(job);
  json["own_best"] = OwnBestJson(job);
  json["default"] = DefaultJson(job);
  json["strategy"] = job.request().strategy();
  json["proposers"] = Json::array();
  for (const v1::Proposer& proposer : job.proposers()) {
    json["proposers"].push_back(FieldsJson(
        proposer,
        {"name", {"accepted", "accepted_count"}, {"measured", "measured_count"}, "latency_ns"}));
  }
  if (job.has_network()) json["network"] = ToJson(job.network());
  if (job.request().network().networks_size() > 1) {
    for (const v1::Network& size : job.request().network().networks()) {
      json["network"]["sizes"].push_back(
          {{"size", size.name()}, {"weight", size.weight() > 0 ? size.weight() : 1}});
    }
  }
  return json;
}

Json TuneJson(const v1::Job& job, double peak_gflops, double trials_per_second) {
  Json best = JobBestJson(job);
  if (!best.is_null()) {
    best["trace"] = job.best().trace();
    best["record"] = job.best().record().id();
    best["pinned"] = PinnedJson(job.best());
  }
  Json json = FieldsJson(job, {"workload", "target", "trials"});
  json["outcomes"] = client::OutcomesOf(job);
  json["wall_s"] = static_cast<double>(job.wall_ms()) / 1e3;
  json["trials_per_min"] = 60 * trials_per_second;
  json["best"] = std::move(best);
  json["own_best"] = OwnBestJson(job);
  json["default"] = DefaultJson(job);
  json["disturbed"] = job.disturbed();
  json["peak_gflops"] = peak_gflops;
  json.update(FieldsJson(job, {{"id", "job"}, "state", "note"}));
  return json;
}

Json BestJson(const v1::Best& best) {
  Json whole = {{"workload", best.workload()}, {"target", best.record().target()}};
  if (best.has_nearest()) {
    // "best" is null, so that an adapted schedule is not mistaken for a measured one.
    whole["best"] = nullptr;
    whole["adapted"] = {{"trace", best.trace()}};
    whole["nearest"] = FieldsJson(
        best.nearest(), {"workload", "distance", "latency_ns", "gflops", {"record.id", "record"}});
    return whole;
  }
  Json json = LatencyJson(best);
  json["confirmed"] = client::LatencyIsConfirmed(best);
  json.update(FieldsJson(best, {"trace", "peak_gflops"}));
  json["policy"] = client::RecordOf(best).policy.Key();
  json.update(FieldsJson(best, {{"record.result.inputs", "inputs"},
                                "processes",
                                {"record.id", "record"},
                                {"record.result.artifact_digest", "artifact_digest"},
                                {"record.created_unix_ms", "measured_unix_ms"},
                                {"record.proposer", "proposer"}}));
  json["pinned"] = PinnedJson(best);
  whole["best"] = std::move(json);
  return whole;
}

Json PinJson(const v1::Best& best) {
  Json json = LatencyJson(best);
  json.update(FieldsJson(best, {{"record.id", "record"},
                                {"record.operator", "operator"},
                                "workload",
                                {"record.target", "target"},
                                {"record.tolerance", "tolerance"}}));
  json["pinned"] = PinnedJson(best);
  return json;
}

void PrintJsonLine(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  absl::PrintF("%s\n", text);
  std::fflush(stdout);
}

absl::Status PrintJson(Json json, absl::Status result) {
  if (!result.ok()) {
    json["error"] = std::string(result.message());
    result.SetPayload(kPrinted, absl::Cord());
  }
  PrintJsonLine(json);
  SetJsonIsPrinted();
  return result;
}

bool IsPrintedAsJson(const absl::Status& error) { return error.GetPayload(kPrinted).has_value(); }

}  // namespace hone::cli
