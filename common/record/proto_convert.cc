#include "common/record/proto_convert.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"

namespace hone::record {
namespace {

absl::Status Refuse(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

absl::Status CheckText(absl::string_view field, absl::string_view text, size_t limit) {
  if (text.size() > limit) {
    return Refuse(field, absl::StrCat(text.size(), " bytes, at most ", limit, " allowed"));
  }
  return absl::OkStatus();
}

// A finite number that is not negative: times, ratios, sizes.
absl::Status CheckAmount(absl::string_view field, double value) {
  if (!std::isfinite(value) || value < 0) {
    return Refuse(field, absl::StrCat(value, " is not a finite number ≥ 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckCount(absl::string_view field, int64_t value, int64_t limit = INT64_MAX) {
  if (value < 0 || value > limit) {
    return Refuse(field, absl::StrCat(value, " is not in [0, ", limit, "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckDigest(absl::string_view field, absl::string_view digest) {
  if (digest.empty()) return absl::OkStatus();
  if (absl::StatusOr<Digest> parsed = Digest::FromHex(digest); !parsed.ok()) {
    return Refuse(field, parsed.status().message());
  }
  return absl::OkStatus();
}

// The length of the UTF-8 sequence at the front of `text`, 0 when there is none.
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

// Valid UTF-8 of at most kMaxDetailBytes: protobuf refuses to parse anything else.
std::string CleanText(absl::string_view text) {
  std::string clean;
  clean.reserve(std::min<size_t>(text.size(), kMaxDetailBytes));
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (clean.size() + std::max<size_t>(length, 1) > kMaxDetailBytes) break;
    if (length == 0) {
      clean.push_back('?');
    } else {
      clean.append(text.data(), length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return clean;
}

}  // namespace

v1::Outcome ToProto(Outcome outcome) { return static_cast<v1::Outcome>(outcome); }

absl::StatusOr<Outcome> FromProto(v1::Outcome outcome) {
  if (outcome < v1::OUTCOME_OK || outcome > v1::OUTCOME_DEVICE_LOST) {
    return Refuse("outcome", absl::StrCat(static_cast<int>(outcome), " is none"));
  }
  return static_cast<Outcome>(outcome);
}

v1::Policy ToProto(const Policy& policy) {
  v1::Policy proto;
  proto.set_name(policy.name);
  proto.set_cache(policy.cache);
  proto.set_threads(policy.threads);
  proto.set_repeats(policy.repeats);
  proto.set_confidence(policy.confidence);
  return proto;
}

absl::StatusOr<Policy> FromProto(const v1::Policy& proto) {
  if (proto.name() != "screen" && proto.name() != "confirm") {
    return Refuse("policy.name",
                  absl::StrCat("'", proto.name(), "' is neither screen nor confirm"));
  }
  if (proto.cache() != "warm" && proto.cache() != "flushed") {
    return Refuse("policy.cache",
                  absl::StrCat("'", proto.cache(), "' is neither warm nor flushed"));
  }
  HONE_RETURN_IF_ERROR(CheckCount("policy.threads", proto.threads(), 1 << 16));
  HONE_RETURN_IF_ERROR(CheckCount("policy.repeats", proto.repeats(), kMaxSamples));
  HONE_RETURN_IF_ERROR(CheckAmount("policy.confidence", proto.confidence()));
  if (proto.confidence() > 1) {
    return Refuse("policy.confidence", absl::StrCat(proto.confidence(), " is not in [0, 1]"));
  }
  return Policy{.name = proto.name(),
                .cache = proto.cache(),
                .threads = proto.threads(),
                .repeats = proto.repeats(),
                .confidence = proto.confidence()};
}

v1::Candidate ToProto(const Candidate& candidate) {
  v1::Candidate proto;
  proto.set_space_digest(candidate.space_digest);
  proto.mutable_decisions()->Assign(candidate.decisions.begin(), candidate.decisions.end());
  return proto;
}

absl::StatusOr<Candidate> FromProto(const v1::Candidate& proto) {
  HONE_RETURN_IF_ERROR(CheckText("candidate.space_digest", proto.space_digest(), 64));
  HONE_RETURN_IF_ERROR(CheckCount("candidate.decisions", proto.decisions_size(), kMaxDecisions));
  return Candidate{.space_digest = proto.space_digest(),
                   .decisions = {proto.decisions().begin(), proto.decisions().end()}};
}

v1::BuildFacts ToProto(const BuildFacts& facts) {
  v1::BuildFacts proto;
  proto.set_compile_ms(facts.compile_ms);
  proto.set_link_ms(facts.link_ms);
  proto.set_code_bytes(facts.code_bytes);
  proto.set_spills(facts.spills);
  proto.set_loads_per_fma(facts.loads_per_fma);
  proto.set_workspace_bytes(facts.workspace_bytes);
  proto.set_program_digest(facts.program_digest);
  return proto;
}

absl::StatusOr<BuildFacts> FromProto(const v1::BuildFacts& proto) {
  HONE_RETURN_IF_ERROR(CheckAmount("facts.compile_ms", proto.compile_ms()));
  HONE_RETURN_IF_ERROR(CheckAmount("facts.link_ms", proto.link_ms()));
  HONE_RETURN_IF_ERROR(CheckCount("facts.code_bytes", proto.code_bytes()));
  HONE_RETURN_IF_ERROR(CheckCount("facts.spills", proto.spills()));
  HONE_RETURN_IF_ERROR(CheckAmount("facts.loads_per_fma", proto.loads_per_fma()));
  HONE_RETURN_IF_ERROR(CheckCount("facts.workspace_bytes", proto.workspace_bytes()));
  HONE_RETURN_IF_ERROR(CheckText("facts.program_digest", proto.program_digest(), 64));
  return BuildFacts{.compile_ms = proto.compile_ms(),
                    .link_ms = proto.link_ms(),
                    .code_bytes = proto.code_bytes(),
                    .spills = proto.spills(),
                    .loads_per_fma = proto.loads_per_fma(),
                    .workspace_bytes = proto.workspace_bytes(),
                    .program_digest = proto.program_digest()};
}

v1::MachineState ToProto(const MachineState& machine) {
  v1::MachineState proto;
  proto.set_frequency_mhz(machine.frequency_mhz);
  proto.set_temperature_c(machine.temperature_c);
  proto.set_load(machine.load);
  proto.set_steal(machine.steal);
  proto.set_remeasured(machine.remeasured);
  return proto;
}

absl::StatusOr<MachineState> FromProto(const v1::MachineState& proto) {
  HONE_RETURN_IF_ERROR(CheckAmount("machine.frequency_mhz", proto.frequency_mhz()));
  if (!std::isfinite(proto.temperature_c())) {  // a board outdoors is below 0
    return Refuse("machine.temperature_c", "not a finite number");
  }
  HONE_RETURN_IF_ERROR(CheckAmount("machine.load", proto.load()));
  HONE_RETURN_IF_ERROR(CheckAmount("machine.steal", proto.steal()));
  HONE_RETURN_IF_ERROR(CheckCount("machine.remeasured", proto.remeasured()));
  return MachineState{.frequency_mhz = proto.frequency_mhz(),
                      .temperature_c = proto.temperature_c(),
                      .load = proto.load(),
                      .steal = proto.steal(),
                      .remeasured = proto.remeasured()};
}

v1::MeasureResult ToProto(const MeasureResult& result) {
  v1::MeasureResult proto;
  proto.set_outcome(ToProto(result.outcome));
  proto.set_detail(CleanText(result.detail));
  proto.mutable_samples_ns()->Assign(result.samples_ns.begin(), result.samples_ns.end());
  proto.set_latency_ns(result.latency_ns);
  proto.set_dispersion(result.dispersion);
  proto.set_reference_drift(result.reference_drift);
  proto.set_stopped_early(result.stopped_early);
  *proto.mutable_facts() = ToProto(result.facts);
  proto.set_artifact_digest(result.artifact_digest);
  proto.set_max_error(result.max_error);
  if (result.machine != MachineState()) *proto.mutable_machine() = ToProto(result.machine);
  return proto;
}

absl::StatusOr<MeasureResult> FromProto(const v1::MeasureResult& proto) {
  HONE_ASSIGN_OR_RETURN(const Outcome outcome, FromProto(proto.outcome()));
  HONE_RETURN_IF_ERROR(CheckText("result.detail", proto.detail(), kMaxDetailBytes));
  HONE_RETURN_IF_ERROR(CheckCount("result.samples_ns", proto.samples_ns_size(), kMaxSamples));
  for (const double sample : proto.samples_ns()) {
    HONE_RETURN_IF_ERROR(CheckAmount("result.samples_ns", sample));
  }
  HONE_RETURN_IF_ERROR(CheckAmount("result.latency_ns", proto.latency_ns()));
  HONE_RETURN_IF_ERROR(CheckAmount("result.dispersion", proto.dispersion()));
  HONE_RETURN_IF_ERROR(CheckAmount("result.reference_drift", proto.reference_drift()));
  HONE_RETURN_IF_ERROR(CheckAmount("result.max_error", proto.max_error()));
  HONE_RETURN_IF_ERROR(CheckDigest("result.artifact_digest", proto.artifact_digest()));
  HONE_ASSIGN_OR_RETURN(BuildFacts facts, FromProto(proto.facts()));
  HONE_ASSIGN_OR_RETURN(const MachineState machine, FromProto(proto.machine()));
  return MeasureResult{.outcome = outcome,
                       .detail = proto.detail(),
                       .samples_ns = {proto.samples_ns().begin(), proto.samples_ns().end()},
                       .latency_ns = proto.latency_ns(),
                       .dispersion = proto.dispersion(),
                       .reference_drift = proto.reference_drift(),
                       .stopped_early = proto.stopped_early(),
                       .facts = std::move(facts),
                       .artifact_digest = proto.artifact_digest(),
                       .max_error = proto.max_error(),
                       .machine = machine};
}

v1::Environment ToProto(const Environment& environment) {
  v1::Environment proto;
  proto.set_cpu(CleanText(environment.cpu));
  proto.set_isa(CleanText(environment.isa));
  proto.set_cores(environment.cores);
  proto.set_os(CleanText(environment.os));
  proto.set_governor(CleanText(environment.governor));
  proto.set_compiler(CleanText(environment.compiler));
  proto.set_codegen_version(environment.codegen_version);
  proto.set_hone_version(CleanText(environment.hone_version));
  return proto;
}

absl::StatusOr<Environment> FromProto(const v1::Environment& proto) {
  for (const std::string* text : {&proto.cpu(), &proto.isa(), &proto.os(), &proto.governor(),
                                  &proto.compiler(), &proto.hone_version()}) {
    HONE_RETURN_IF_ERROR(CheckText("environment", *text, kMaxDetailBytes));
  }
  HONE_RETURN_IF_ERROR(CheckCount("environment.cores", proto.cores(), 1 << 16));
  HONE_RETURN_IF_ERROR(CheckCount("environment.codegen_version", proto.codegen_version()));
  return Environment{.cpu = proto.cpu(),
                     .isa = proto.isa(),
                     .cores = proto.cores(),
                     .os = proto.os(),
                     .governor = proto.governor(),
                     .compiler = proto.compiler(),
                     .codegen_version = proto.codegen_version(),
                     .hone_version = proto.hone_version()};
}

v1::Record ToProto(const Record& record) {
  v1::Record proto;
  proto.set_id(record.id);
  proto.set_workload_digest(record.workload_digest);
  proto.set_operator_(record.op);
  proto.set_target(record.target);
  proto.set_tolerance(record.tolerance);
  *proto.mutable_policy() = ToProto(record.policy);
  *proto.mutable_candidate() = ToProto(record.candidate);
  *proto.mutable_result() = ToProto(record.result);
  *proto.mutable_environment() = ToProto(record.environment);
  proto.set_job_id(record.job_id);
  proto.set_trial(record.trial);
  proto.set_created_unix_ms(record.created_unix_ms);
  proto.set_is_default(record.is_default);
  proto.set_quarantined(record.quarantined);
  proto.set_quarantine_reason(CleanText(record.quarantine_reason));
  return proto;
}

absl::StatusOr<Record> FromProto(const v1::Record& proto) {
  HONE_RETURN_IF_ERROR(CheckText("record.workload_digest", proto.workload_digest(), 64));
  HONE_RETURN_IF_ERROR(CheckText("record.operator", proto.operator_(), 256));
  HONE_RETURN_IF_ERROR(CheckText("record.target", proto.target(), 256));
  HONE_RETURN_IF_ERROR(CheckText("record.job_id", proto.job_id(), 256));
  HONE_RETURN_IF_ERROR(
      CheckText("record.quarantine_reason", proto.quarantine_reason(), kMaxDetailBytes));
  HONE_RETURN_IF_ERROR(CheckAmount("record.tolerance", proto.tolerance()));
  Record record;
  record.id = proto.id();
  record.workload_digest = proto.workload_digest();
  record.op = proto.operator_();
  record.target = proto.target();
  record.tolerance = proto.tolerance();
  HONE_ASSIGN_OR_RETURN(record.policy, FromProto(proto.policy()));
  HONE_ASSIGN_OR_RETURN(record.candidate, FromProto(proto.candidate()));
  HONE_ASSIGN_OR_RETURN(record.result, FromProto(proto.result()));
  HONE_ASSIGN_OR_RETURN(record.environment, FromProto(proto.environment()));
  record.job_id = proto.job_id();
  record.trial = proto.trial();
  record.created_unix_ms = proto.created_unix_ms();
  record.is_default = proto.is_default();
  record.quarantined = proto.quarantined();
  record.quarantine_reason = proto.quarantine_reason();
  return record;
}

v1::BuildRequest ToProto(const BuildRequest& request) {
  v1::BuildRequest proto;
  proto.set_workload(request.workload);
  proto.set_space(request.space);
  proto.mutable_decisions()->Assign(request.decisions.begin(), request.decisions.end());
  proto.set_target(request.target);
  proto.set_artifact_dir(request.artifact_dir);
  proto.set_reference(request.reference);
  return proto;
}

absl::StatusOr<BuildRequest> FromProto(const v1::BuildRequest& proto) {
  HONE_RETURN_IF_ERROR(CheckText("workload", proto.workload(), kMaxTextBytes));
  HONE_RETURN_IF_ERROR(CheckText("space", proto.space(), kMaxTextBytes));
  HONE_RETURN_IF_ERROR(CheckText("target", proto.target(), kMaxDetailBytes));
  HONE_RETURN_IF_ERROR(CheckText("artifact_dir", proto.artifact_dir(), 4096));
  HONE_RETURN_IF_ERROR(CheckCount("decisions", proto.decisions_size(), kMaxDecisions));
  return BuildRequest{.workload = proto.workload(),
                      .space = proto.space(),
                      .decisions = {proto.decisions().begin(), proto.decisions().end()},
                      .target = proto.target(),
                      .artifact_dir = proto.artifact_dir(),
                      .reference = proto.reference()};
}

v1::BuildResponse ToProto(const BuildResponse& response) {
  v1::BuildResponse proto;
  proto.set_outcome(ToProto(response.outcome));
  proto.set_detail(CleanText(response.detail));
  proto.set_artifact_digest(response.artifact_digest);
  *proto.mutable_facts() = ToProto(response.facts);
  return proto;
}

absl::StatusOr<BuildResponse> FromProto(const v1::BuildResponse& proto) {
  BuildResponse response;
  HONE_ASSIGN_OR_RETURN(response.outcome, FromProto(proto.outcome()));
  HONE_RETURN_IF_ERROR(CheckText("detail", proto.detail(), kMaxDetailBytes));
  HONE_RETURN_IF_ERROR(CheckDigest("artifact_digest", proto.artifact_digest()));
  HONE_ASSIGN_OR_RETURN(response.facts, FromProto(proto.facts()));
  response.detail = proto.detail();
  response.artifact_digest = proto.artifact_digest();
  return response;
}

v1::RunRequest ToProto(const RunRequest& request) {
  v1::RunRequest proto;
  proto.set_workload(request.workload);
  proto.set_workload_digest(request.workload_digest);
  proto.set_artifact_path(request.artifact_path);
  proto.set_reference_path(request.reference_path);
  proto.set_reference_data(request.reference_data);
  *proto.mutable_policy() = ToProto(request.policy);
  proto.set_tolerance(request.tolerance);
  proto.set_best_latency_ns(request.best_latency_ns);
  proto.set_peak_gflops(request.peak_gflops);
  proto.set_seed(request.seed);
  proto.set_time_limit_ms(request.time_limit_ms);
  return proto;
}

absl::StatusOr<RunRequest> FromProto(const v1::RunRequest& proto) {
  HONE_RETURN_IF_ERROR(CheckText("workload", proto.workload(), kMaxTextBytes));
  HONE_RETURN_IF_ERROR(CheckText("workload_digest", proto.workload_digest(), 64));
  HONE_RETURN_IF_ERROR(CheckText("artifact_path", proto.artifact_path(), 4096));
  HONE_RETURN_IF_ERROR(CheckText("reference_path", proto.reference_path(), 4096));
  HONE_RETURN_IF_ERROR(CheckText("reference_data", proto.reference_data(), 4096));
  HONE_RETURN_IF_ERROR(CheckAmount("tolerance", proto.tolerance()));
  HONE_RETURN_IF_ERROR(CheckAmount("best_latency_ns", proto.best_latency_ns()));
  HONE_RETURN_IF_ERROR(CheckAmount("peak_gflops", proto.peak_gflops()));
  HONE_RETURN_IF_ERROR(CheckCount("time_limit_ms", proto.time_limit_ms()));
  RunRequest request;
  request.workload = proto.workload();
  request.workload_digest = proto.workload_digest();
  request.artifact_path = proto.artifact_path();
  request.reference_path = proto.reference_path();
  request.reference_data = proto.reference_data();
  HONE_ASSIGN_OR_RETURN(request.policy, FromProto(proto.policy()));
  request.tolerance = proto.tolerance();
  request.best_latency_ns = proto.best_latency_ns();
  request.peak_gflops = proto.peak_gflops();
  request.seed = proto.seed();
  request.time_limit_ms = proto.time_limit_ms();
  return request;
}

}  // namespace hone::record
