#include "server/task/job_codec.h"

#include <utility>

#include "absl/status/status.h"
#include "server/task/json_fields.h"

namespace hone::task {
namespace {

Json ToJson(const record::Environment& e) {
  return {{"cpu", e.cpu},
          {"isa", e.isa},
          {"cores", e.cores},
          {"os", e.os},
          {"governor", e.governor},
          {"compiler", e.compiler},
          {"codegen_version", e.codegen_version},
          {"hone_version", e.hone_version}};
}

void FromJson(const Json& json, record::Environment* e) {
  Read(json, "cpu", &e->cpu);
  Read(json, "isa", &e->isa);
  Read(json, "cores", &e->cores);
  Read(json, "os", &e->os);
  Read(json, "governor", &e->governor);
  Read(json, "compiler", &e->compiler);
  Read(json, "codegen_version", &e->codegen_version);
  Read(json, "hone_version", &e->hone_version);
}

Json ToJson(const record::BuildFacts& f) {
  return {{"compile_ms", f.compile_ms},        {"link_ms", f.link_ms},
          {"code_bytes", f.code_bytes},        {"spills", f.spills},
          {"loads_per_fma", f.loads_per_fma},  {"workspace_bytes", f.workspace_bytes},
          {"program_digest", f.program_digest}};
}

void FromJson(const Json& json, record::BuildFacts* f) {
  Read(json, "compile_ms", &f->compile_ms);
  Read(json, "link_ms", &f->link_ms);
  Read(json, "code_bytes", &f->code_bytes);
  Read(json, "spills", &f->spills);
  Read(json, "loads_per_fma", &f->loads_per_fma);
  Read(json, "workspace_bytes", &f->workspace_bytes);
  Read(json, "program_digest", &f->program_digest);
}

Json ToJson(const record::MeasureResult& r) {
  return {{"outcome", std::string(record::OutcomeName(r.outcome))},
          {"detail", r.detail},
          {"samples_ns", r.samples_ns},
          {"latency_ns", r.latency_ns},
          {"dispersion", r.dispersion},
          {"reference_drift", r.reference_drift},
          {"stopped_early", r.stopped_early},
          {"facts", ToJson(r.facts)},
          {"artifact_digest", r.artifact_digest},
          {"max_error", r.max_error},
          {"machine",
           {{"frequency_mhz", r.machine.frequency_mhz},
            {"temperature_c", r.machine.temperature_c},
            {"load", r.machine.load},
            {"steal", r.machine.steal},
            {"remeasured", r.machine.remeasured}}}};
}

void FromJson(const Json& json, record::MeasureResult* r) {
  std::string outcome;
  Read(json, "outcome", &outcome);
  if (auto known = record::OutcomeFromName(outcome); known.ok()) r->outcome = *known;
  Read(json, "detail", &r->detail);
  Read(json, "samples_ns", &r->samples_ns);
  Read(json, "latency_ns", &r->latency_ns);
  Read(json, "dispersion", &r->dispersion);
  Read(json, "reference_drift", &r->reference_drift);
  Read(json, "stopped_early", &r->stopped_early);
  if (json.contains("facts")) FromJson(json["facts"], &r->facts);
  Read(json, "artifact_digest", &r->artifact_digest);
  Read(json, "max_error", &r->max_error);
  if (auto machine = json.find("machine"); machine != json.end() && machine->is_object()) {
    Read(*machine, "frequency_mhz", &r->machine.frequency_mhz);
    Read(*machine, "temperature_c", &r->machine.temperature_c);
    Read(*machine, "load", &r->machine.load);
    Read(*machine, "steal", &r->machine.steal);
    Read(*machine, "remeasured", &r->machine.remeasured);
  }
}

Json ToJson(const record::Record& r) {
  return {{"id", r.id},
          {"workload_digest", r.workload_digest},
          {"op", r.op},
          {"target", r.target},
          {"tolerance", r.tolerance},
          {"policy",
           {{"name", r.policy.name},
            {"cache", r.policy.cache},
            {"threads", r.policy.threads},
            {"repeats", r.policy.repeats},
            {"confidence", r.policy.confidence}}},
          {"space", r.candidate.space_digest},
          {"decisions", r.candidate.decisions},
          {"result", ToJson(r.result)},
          {"environment", ToJson(r.environment)},
          {"job_id", r.job_id},
          {"trial", r.trial},
          {"created_unix_ms", r.created_unix_ms},
          {"is_default", r.is_default},
          {"quarantined", r.quarantined},
          {"quarantine_reason", r.quarantine_reason}};
}

void FromJson(const Json& json, record::Record* r) {
  Read(json, "id", &r->id);
  Read(json, "workload_digest", &r->workload_digest);
  Read(json, "op", &r->op);
  Read(json, "target", &r->target);
  Read(json, "tolerance", &r->tolerance);
  if (auto policy = json.find("policy"); policy != json.end() && policy->is_object()) {
    Read(*policy, "name", &r->policy.name);
    Read(*policy, "cache", &r->policy.cache);
    Read(*policy, "threads", &r->policy.threads);
    Read(*policy, "repeats", &r->policy.repeats);
    Read(*policy, "confidence", &r->policy.confidence);
  }
  Read(json, "space", &r->candidate.space_digest);
  Read(json, "decisions", &r->candidate.decisions);
  if (json.contains("result")) FromJson(json["result"], &r->result);
  if (json.contains("environment")) FromJson(json["environment"], &r->environment);
  Read(json, "job_id", &r->job_id);
  Read(json, "trial", &r->trial);
  Read(json, "created_unix_ms", &r->created_unix_ms);
  Read(json, "is_default", &r->is_default);
  Read(json, "quarantined", &r->quarantined);
  Read(json, "quarantine_reason", &r->quarantine_reason);
}

Json ToJson(const Best& best) {
  return {{"record", ToJson(best.record)},
          {"workload", best.workload},
          {"trace", best.trace},
          {"gflops", best.gflops},
          {"peak_gflops", best.peak_gflops},
          {"read_gbps", best.read_gbps}};
}

void ReadBest(const Json& json, const char* name, std::optional<Best>* best) {
  auto found = json.find(name);
  if (found == json.end() || !found->is_object() || !found->contains("record")) return;
  best->emplace();
  FromJson((*found)["record"], &(*best)->record);
  Read(*found, "workload", &(*best)->workload);
  Read(*found, "trace", &(*best)->trace);
  Read(*found, "gflops", &(*best)->gflops);
  Read(*found, "peak_gflops", &(*best)->peak_gflops);
  Read(*found, "read_gbps", &(*best)->read_gbps);
}

}  // namespace

std::string EncodeSpec(const JobSpec& spec) {
  return ToLine({{"request_id", spec.request_id},
                 {"workload", spec.workload},
                 {"requested_target", spec.requested_target},
                 {"target_key", spec.target_key},
                 {"target", spec.target},
                 {"max_trials", spec.max_trials},
                 {"max_time_ms", absl::ToInt64Milliseconds(spec.max_time)},
                 {"seed", spec.seed},
                 {"strategy", spec.strategy},
                 {"cost_model", spec.cost_model},
                 {"tolerance", spec.tolerance},
                 {"feature_set", spec.feature_set},
                 {"transfer", spec.transfer},
                 {"space", spec.space},
                 {"revalidate", spec.revalidate},
                 {"owner", spec.owner},
                 {"priority", spec.priority}});
}

absl::StatusOr<JobSpec> DecodeSpec(absl::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_object()) return absl::DataLossError("the request of a job cannot be read");
  JobSpec spec;
  int64_t max_time_ms = 0;
  Read(json, "request_id", &spec.request_id);
  Read(json, "workload", &spec.workload);
  Read(json, "requested_target", &spec.requested_target);
  Read(json, "target_key", &spec.target_key);
  Read(json, "target", &spec.target);
  Read(json, "max_trials", &spec.max_trials);
  Read(json, "max_time_ms", &max_time_ms);
  Read(json, "seed", &spec.seed);
  Read(json, "strategy", &spec.strategy);
  Read(json, "cost_model", &spec.cost_model);
  Read(json, "tolerance", &spec.tolerance);
  Read(json, "feature_set", &spec.feature_set);
  Read(json, "transfer", &spec.transfer);
  Read(json, "space", &spec.space);
  Read(json, "revalidate", &spec.revalidate);
  Read(json, "owner", &spec.owner);
  Read(json, "priority", &spec.priority);
  spec.max_time = absl::Milliseconds(max_time_ms);
  return spec;
}

std::string EncodeSnapshot(const JobSnapshot& snapshot) {
  Json outcomes = Json::object();
  for (const auto& [outcome, count] : snapshot.outcomes) {
    outcomes[std::string(record::OutcomeName(outcome))] = count;
  }
  Json json = {{"id", snapshot.id},
               {"state", std::string(JobStateName(snapshot.state))},
               {"cancelled", snapshot.cancelled},
               {"error", snapshot.error},
               {"workload_digest", snapshot.workload_digest},
               {"trials", snapshot.trials},
               {"outcomes", outcomes},
               {"dropped", snapshot.dropped},
               {"quarantined", snapshot.quarantined},
               {"created_unix_ms", snapshot.created_unix_ms},
               {"wall_ms", absl::ToInt64Milliseconds(snapshot.wall)},
               {"phase", snapshot.phase},
               {"note", snapshot.note},
               {"version", snapshot.version}};
  if (snapshot.best) json["best"] = ToJson(*snapshot.best);
  if (snapshot.default_schedule) json["default"] = ToJson(*snapshot.default_schedule);
  if (snapshot.given) json["given"] = ToJson(*snapshot.given);
  if (snapshot.crashes > 0) json["crashes"] = snapshot.crashes;
  if (const std::optional<RiskyStep>& step = snapshot.risky_step; step.has_value()) {
    json["risky_step"] = {{"name", step->name}, {"server", step->server}, {"boot", step->boot}};
  }
  return ToLine(json);
}

absl::StatusOr<JobSnapshot> DecodeSnapshot(absl::string_view text) {
  const Json json = ParseJson(text);
  if (!json.is_object()) return absl::DataLossError("the summary of a job cannot be read");
  JobSnapshot snapshot;
  std::string state;
  int64_t wall_ms = 0;
  Read(json, "id", &snapshot.id);
  Read(json, "state", &state);
  Read(json, "cancelled", &snapshot.cancelled);
  Read(json, "error", &snapshot.error);
  Read(json, "workload_digest", &snapshot.workload_digest);
  Read(json, "trials", &snapshot.trials);
  if (auto outcomes = json.find("outcomes"); outcomes != json.end() && outcomes->is_object()) {
    for (const auto& [name, count] : outcomes->items()) {
      if (auto outcome = record::OutcomeFromName(name); outcome.ok() && count.is_number()) {
        snapshot.outcomes[*outcome] = count.get<int64_t>();
      }
    }
  }
  Read(json, "dropped", &snapshot.dropped);
  Read(json, "quarantined", &snapshot.quarantined);
  Read(json, "created_unix_ms", &snapshot.created_unix_ms);
  Read(json, "wall_ms", &wall_ms);
  Read(json, "phase", &snapshot.phase);
  Read(json, "note", &snapshot.note);
  Read(json, "version", &snapshot.version);
  ReadBest(json, "best", &snapshot.best);
  ReadBest(json, "default", &snapshot.default_schedule);
  ReadBest(json, "given", &snapshot.given);
  Read(json, "crashes", &snapshot.crashes);
  if (auto step = json.find("risky_step"); step != json.end() && step->is_object()) {
    snapshot.risky_step.emplace();
    Read(*step, "name", &snapshot.risky_step->name);
    Read(*step, "server", &snapshot.risky_step->server);
    Read(*step, "boot", &snapshot.risky_step->boot);
  }
  snapshot.wall = absl::Milliseconds(wall_ms);
  if (auto known = JobStateFromName(state); known.ok()) snapshot.state = *known;
  return snapshot;
}

}  // namespace hone::task
