#ifndef HONE_SERVER_STORE_RECORD_COLUMNS_H_
#define HONE_SERVER_STORE_RECORD_COLUMNS_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/record.h"
#include "server/store/blob_codec.h"
#include "server/store/store.h"

// The columns of the tables record and environment in the order in which they are bound and read,
// the same in every database. Binder and Row are a database's statement and result, which have the
// functions of Statement (sqlite_statement.h) of the same name.
namespace hone::store {

// The select list that ReadRecord reads, over the tables record r and environment e.
inline constexpr char kRecordColumns[] =
    "r.id, r.workload, r.op, r.target, r.tolerance, r.policy_name, r.policy_cache,"
    " r.policy_threads, r.policy_repeats, r.policy_confidence, r.created_unix_ms, r.is_default,"
    " r.quarantined, r.quarantine_reason, r.job, r.trial, r.space, r.decisions, r.outcome,"
    " r.latency_ns, r.dispersion, r.reference_drift, r.stopped_early, r.max_error, r.compile_ms,"
    " r.link_ms, r.code_bytes, r.spills, r.loads_per_fma, r.workspace_bytes, r.program, r.artifact,"
    " r.samples_ns, r.detail, r.frequency_mhz, r.temperature_c, r.load, r.steal, r.remeasured,"
    " e.cpu, e.isa, e.cores, e.os, e.governor, e.compiler, e.codegen_version, e.hone_version";

inline constexpr char kEnvironmentColumns[] =
    "cpu, isa, cores, os, governor, compiler, codegen_version, hone_version";
inline constexpr int kEnvironmentColumnCount = 8;

// What BindRecord binds, in its order; the column environment, which comes last, is bound by the
// caller.
inline constexpr char kRecordInsertColumns[] =
    "workload, op, target, tolerance, policy_name, policy_cache, policy_threads, policy_repeats,"
    " policy_confidence, created_unix_ms, is_default, quarantined, quarantine_reason, job, trial,"
    " space, decisions, outcome, latency_ns, dispersion, reference_drift, stopped_early, max_error,"
    " compile_ms, link_ms, code_bytes, spills, loads_per_fma, workspace_bytes, program, artifact,"
    " samples_ns, detail, frequency_mhz, temperature_c, load, steal, remeasured, environment";
inline constexpr int kRecordInsertColumnCount = 38;  // without environment

// What every record must have. InvalidArgument: see Store::Append.
inline absl::Status CheckRecord(const record::Record& record) {
  if (record.workload_digest.empty() || record.target.empty()) {
    return absl::InvalidArgumentError("a record needs a workload digest and a target");
  }
  if (!std::isfinite(record.tolerance) || record.tolerance < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record's tolerance is a finite number from 0, not ", record.tolerance));
  }
  const double latency_ns = record.result.latency_ns;
  if (record.result.outcome == record::Outcome::kOk &&
      !(latency_ns > 0 && std::isfinite(latency_ns))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record with outcome ok needs a positive latency, not ", latency_ns, " ns"));
  }
  return absl::OkStatus();
}

// InvalidArgument: the page size is not in 1 to 1000, or no outcome has that name.
inline absl::Status CheckQuery(const RecordQuery& query) {
  if (query.page_size < 1 || query.page_size > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page has 1 to 1000 records, not ", query.page_size));
  }
  if (query.outcome.empty()) return absl::OkStatus();
  return record::OutcomeFromName(query.outcome).status();
}

template <typename Binder>
void BindEnvironment(Binder& s, const record::Environment& e) {
  s.Bind(e.cpu).Bind(e.isa).Bind(int64_t{e.cores}).Bind(e.os).Bind(e.governor);
  s.Bind(e.compiler).Bind(int64_t{e.codegen_version}).Bind(e.hone_version);
}

template <typename Binder>
void BindRecord(Binder& s, const record::Record& record) {
  const record::MeasureResult& result = record.result;
  const record::BuildFacts& facts = result.facts;
  const record::MachineState& machine = result.machine;
  s.Bind(record.workload_digest).Bind(record.op).Bind(record.target).Bind(record.tolerance);
  s.Bind(record.policy.name).Bind(record.policy.cache).Bind(int64_t{record.policy.threads});
  s.Bind(int64_t{record.policy.repeats}).Bind(record.policy.confidence);
  s.Bind(record.created_unix_ms).BindBool(record.is_default).BindBool(record.quarantined);
  s.Bind(record.quarantine_reason).Bind(record.job_id).Bind(record.trial);
  s.Bind(record.candidate.space_digest);
  s.BindBlob(EncodeDecisions(record.candidate.decisions));
  s.Bind(record::OutcomeName(result.outcome)).Bind(result.latency_ns).Bind(result.dispersion);
  s.Bind(result.reference_drift).BindBool(result.stopped_early).Bind(result.max_error);
  s.Bind(facts.compile_ms).Bind(facts.link_ms).Bind(facts.code_bytes).Bind(facts.spills);
  s.Bind(facts.loads_per_fma).Bind(facts.workspace_bytes).Bind(facts.program_digest);
  s.Bind(result.artifact_digest).BindBlob(EncodeSamples(result.samples_ns));
  s.BindRaw(result.detail);
  s.Bind(machine.frequency_mhz).Bind(machine.temperature_c).Bind(machine.load).Bind(machine.steal);
  s.Bind(int64_t{machine.remeasured});
}

// Reads a record from the next columns of the row. DataLoss: an unknown outcome or a malformed
// blob.
template <typename Row>
absl::StatusOr<record::Record> ReadRecord(Row& row) {
  record::Record record;
  record.id = row.Int64();
  record.workload_digest = row.Text();
  record.op = row.Text();
  record.target = row.Text();
  record.tolerance = row.Double();
  record.policy.name = row.Text();
  record.policy.cache = row.Text();
  record.policy.threads = static_cast<int>(row.Int64());
  record.policy.repeats = static_cast<int>(row.Int64());
  record.policy.confidence = row.Double();
  record.created_unix_ms = row.Int64();
  record.is_default = row.Bool();
  record.quarantined = row.Bool();
  record.quarantine_reason = row.Text();
  record.job_id = row.Text();
  record.trial = row.Int64();
  record.candidate.space_digest = row.Text();
  HONE_ASSIGN_OR_RETURN(record.candidate.decisions, DecodeDecisions(row.Blob()));
  record::MeasureResult& result = record.result;
  const std::string outcome = row.Text();
  const absl::StatusOr<record::Outcome> known = record::OutcomeFromName(outcome);
  if (!known.ok()) {
    return absl::DataLossError(
        absl::StrCat("record ", record.id, " has an unknown outcome '", outcome, "'"));
  }
  result.outcome = *known;
  result.latency_ns = row.Double();
  result.dispersion = row.Double();
  result.reference_drift = row.Double();
  result.stopped_early = row.Bool();
  result.max_error = row.Double();
  record::BuildFacts& facts = result.facts;
  facts.compile_ms = row.Double();
  facts.link_ms = row.Double();
  facts.code_bytes = row.Int64();
  facts.spills = row.Int64();
  facts.loads_per_fma = row.Double();
  facts.workspace_bytes = row.Int64();
  facts.program_digest = row.Text();
  result.artifact_digest = row.Text();
  HONE_ASSIGN_OR_RETURN(result.samples_ns, DecodeSamples(row.Blob()));
  result.detail = row.Raw();
  record::MachineState& machine = result.machine;
  machine.frequency_mhz = row.Double();
  machine.temperature_c = row.Double();
  machine.load = row.Double();
  machine.steal = row.Double();
  machine.remeasured = static_cast<int>(row.Int64());
  record::Environment& environment = record.environment;
  environment.cpu = row.Text();
  environment.isa = row.Text();
  environment.cores = static_cast<int>(row.Int64());
  environment.os = row.Text();
  environment.governor = row.Text();
  environment.compiler = row.Text();
  environment.codegen_version = static_cast<int>(row.Int64());
  environment.hone_version = row.Text();
  return record;
}

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_RECORD_COLUMNS_H_
