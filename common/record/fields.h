#ifndef HONE_COMMON_RECORD_FIELDS_H_
#define HONE_COMMON_RECORD_FIELDS_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/record/record.h"

// The description of the structs of record.h: the names and the valid values of each field. All
// mappings are derived from it: messages (message_fields.h), SQL columns and JSON lines
// (server/store), and the state of jobs (server/job). A new field needs one line here, one in
// record.h, one in types.proto, and a column of the store.
//
// VisitFields(value, visit) calls visit(field, member) for each member in order. A member of a
// struct type is visited as a whole; the visitor may call VisitFields for it.
namespace hone::record {

inline constexpr int kMaxDetailBytes = 64 << 10;
inline constexpr int kMaxTextBytes = 16 << 20;  // workloads, design spaces
inline constexpr int kMaxNameBytes = 256;
inline constexpr int kMaxDecisions = 1 << 16;
inline constexpr int kMaxSamples = 1 << 16;

enum class Rule {
  kAny,
  // Texts.
  kName,    // at most kMaxNameBytes
  kPath,    // at most 4096 bytes
  kText,    // at most kMaxTextBytes
  kFree,    // any bytes; converted in messages to valid UTF-8 of at most kMaxDetailBytes
  kSha256,  // "" or 64 hex digits
  kKey,     // "" or 32 hex digits in an import; at most 64 bytes in a message
  // Numbers.
  kAmount,  // finite and not negative: times, ratios
  kFinite,
  kCount,  // whole, from 0 to `most`
};

struct Field {
  const char* proto;  // name in messages
  // Name in JSON; null: as in messages; "": a struct whose members are in the enclosing object.
  const char* name = nullptr;
  // Name in SQL; null: as in JSON. For a struct, the prefix of its columns.
  const char* column = nullptr;
  Rule rule = Rule::kAny;
  int64_t least = 0;  // of whole numbers in an import
  int64_t most = std::numeric_limits<int64_t>::max();
  const char* choices[2] = {nullptr, nullptr};  // a text that must be one of these
  bool raw = false;                             // a text that may contain any bytes
  bool by_store = false;                        // set by the store; neither inserted nor exported

  constexpr const char* json_name() const { return name != nullptr ? name : proto; }
  constexpr const char* column_name() const { return column != nullptr ? column : json_name(); }
};

// T or const T.
template <typename Given, typename T>
concept Is = std::is_same_v<std::remove_const_t<Given>, T>;

template <Is<Policy> P, typename Visit>
void VisitFields(P& policy, Visit& visit) {
  visit({.proto = "name", .choices = {"screen", "confirm"}}, policy.name);
  visit({.proto = "cache", .choices = {"warm", "flushed"}}, policy.cache);
  visit({.proto = "threads", .rule = Rule::kCount, .most = 1 << 16}, policy.threads);
  visit({.proto = "repeats", .rule = Rule::kCount, .most = kMaxSamples}, policy.repeats);
  visit({.proto = "confidence", .rule = Rule::kAmount, .most = 1}, policy.confidence);
}

template <Is<Candidate> C, typename Visit>
void VisitFields(C& candidate, Visit& visit) {
  visit({.proto = "space_digest", .name = "space", .rule = Rule::kKey}, candidate.space_digest);
  visit({.proto = "decisions", .most = kMaxDecisions}, candidate.decisions);
}

template <Is<BuildFacts> F, typename Visit>
void VisitFields(F& facts, Visit& visit) {
  visit({.proto = "compile_ms", .rule = Rule::kAmount}, facts.compile_ms);
  visit({.proto = "link_ms", .rule = Rule::kAmount}, facts.link_ms);
  visit({.proto = "code_bytes", .rule = Rule::kCount}, facts.code_bytes);
  visit({.proto = "spills", .rule = Rule::kCount}, facts.spills);
  visit({.proto = "loads_per_fma", .rule = Rule::kAmount}, facts.loads_per_fma);
  visit({.proto = "workspace_bytes", .rule = Rule::kCount}, facts.workspace_bytes);
  visit({.proto = "program_digest", .name = "program", .rule = Rule::kKey}, facts.program_digest);
}

template <Is<MachineState> M, typename Visit>
void VisitFields(M& machine, Visit& visit) {
  visit({.proto = "frequency_mhz", .rule = Rule::kAmount}, machine.frequency_mhz);
  visit({.proto = "temperature_c", .rule = Rule::kFinite},
        machine.temperature_c);  // may be negative
  visit({.proto = "load", .rule = Rule::kAmount}, machine.load);
  visit({.proto = "steal", .rule = Rule::kAmount}, machine.steal);
  visit({.proto = "remeasured", .rule = Rule::kCount, .most = std::numeric_limits<int>::max()},
        machine.remeasured);
}

template <Is<MeasureResult> R, typename Visit>
void VisitFields(R& result, Visit& visit) {
  visit({.proto = "outcome"}, result.outcome);
  visit({.proto = "detail", .rule = Rule::kFree, .raw = true}, result.detail);
  visit({.proto = "latency_ns", .rule = Rule::kAmount}, result.latency_ns);
  visit({.proto = "samples_ns", .rule = Rule::kAmount, .most = kMaxSamples}, result.samples_ns);
  visit({.proto = "dispersion", .rule = Rule::kAmount}, result.dispersion);
  visit({.proto = "reference_drift", .rule = Rule::kAmount}, result.reference_drift);
  visit({.proto = "stopped_early"}, result.stopped_early);
  visit({.proto = "max_error", .rule = Rule::kAmount}, result.max_error);
  visit({.proto = "artifact_digest", .name = "artifact", .rule = Rule::kSha256},
        result.artifact_digest);
  visit({.proto = "facts", .column = ""}, result.facts);
  visit({.proto = "machine", .column = ""}, result.machine);
  visit({.proto = "processes", .rule = Rule::kCount, .most = 1 << 16}, result.processes);
  visit({.proto = "inputs", .rule = Rule::kName}, result.inputs);
  visit({.proto = "counters", .rule = Rule::kFree}, result.counters);
}

template <Is<Environment> E, typename Visit>
void VisitFields(E& environment, Visit& visit) {
  visit({.proto = "cpu", .rule = Rule::kFree}, environment.cpu);
  visit({.proto = "isa", .rule = Rule::kFree}, environment.isa);
  visit({.proto = "cores", .rule = Rule::kCount, .most = 1 << 16}, environment.cores);
  visit({.proto = "os", .rule = Rule::kFree}, environment.os);
  visit({.proto = "governor", .rule = Rule::kFree}, environment.governor);
  visit({.proto = "compiler", .rule = Rule::kFree}, environment.compiler);
  visit({.proto = "codegen_version", .rule = Rule::kCount, .most = std::numeric_limits<int>::max()},
        environment.codegen_version);
  visit({.proto = "hone_version", .rule = Rule::kFree}, environment.hone_version);
}

template <Is<Record> R, typename Visit>
void VisitFields(R& record, Visit& visit) {
  visit({.proto = "id", .by_store = true}, record.id);
  visit({.proto = "workload_digest", .name = "workload", .rule = Rule::kKey},
        record.workload_digest);
  visit({.proto = "operator", .column = "op", .rule = Rule::kName}, record.op);
  visit({.proto = "target", .rule = Rule::kName}, record.target);
  visit({.proto = "tolerance", .rule = Rule::kAmount}, record.tolerance);
  visit({.proto = "policy", .column = "policy_"}, record.policy);
  visit({.proto = "candidate", .name = ""}, record.candidate);
  visit({.proto = "result", .name = ""}, record.result);
  visit({.proto = "environment"}, record.environment);
  visit({.proto = "job_id", .name = "job", .rule = Rule::kName}, record.job_id);
  visit({.proto = "trial", .least = kNoTrial}, record.trial);
  visit({.proto = "created_unix_ms"}, record.created_unix_ms);
  visit({.proto = "is_default"}, record.is_default);
  visit({.proto = "proposer", .rule = Rule::kName}, record.proposer);
  visit({.proto = "quarantined"}, record.quarantined);
  visit({.proto = "quarantine_reason", .rule = Rule::kFree}, record.quarantine_reason);
}

template <Is<BuildRequest> R, typename Visit>
void VisitFields(R& request, Visit& visit) {
  visit({.proto = "workload", .rule = Rule::kText}, request.workload);
  visit({.proto = "space", .rule = Rule::kText}, request.space);
  visit({.proto = "decisions", .most = kMaxDecisions}, request.decisions);
  visit({.proto = "target", .rule = Rule::kFree}, request.target);
  visit({.proto = "artifact_dir", .rule = Rule::kPath}, request.artifact_dir);
  visit({.proto = "reference"}, request.reference);
}

template <Is<BuildResponse> R, typename Visit>
void VisitFields(R& response, Visit& visit) {
  visit({.proto = "outcome"}, response.outcome);
  visit({.proto = "detail", .rule = Rule::kFree}, response.detail);
  visit({.proto = "artifact_digest", .rule = Rule::kSha256}, response.artifact_digest);
  visit({.proto = "facts"}, response.facts);
}

template <Is<RunRequest> R, typename Visit>
void VisitFields(R& request, Visit& visit) {
  visit({.proto = "workload", .rule = Rule::kText}, request.workload);
  visit({.proto = "workload_digest", .rule = Rule::kKey}, request.workload_digest);
  visit({.proto = "artifact_path", .rule = Rule::kPath}, request.artifact_path);
  visit({.proto = "reference_path", .rule = Rule::kPath}, request.reference_path);
  visit({.proto = "reference_data", .rule = Rule::kPath}, request.reference_data);
  visit({.proto = "policy"}, request.policy);
  visit({.proto = "tolerance", .rule = Rule::kAmount}, request.tolerance);
  visit({.proto = "best_latency_ns", .rule = Rule::kAmount}, request.best_latency_ns);
  visit({.proto = "peak_gflops", .rule = Rule::kAmount}, request.peak_gflops);
  visit({.proto = "seed"}, request.seed);
  visit({.proto = "time_limit_ms", .rule = Rule::kCount}, request.time_limit_ms);
  visit({.proto = "inputs_digest", .rule = Rule::kSha256}, request.inputs_digest);
  visit({.proto = "inputs_path", .rule = Rule::kPath}, request.inputs_path);
}

}  // namespace hone::record

#endif  // HONE_COMMON_RECORD_FIELDS_H_
