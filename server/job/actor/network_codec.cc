#include "server/job/actor/network_codec.h"

#include <algorithm>

#include "hone/v1/job_state.pb.h"
#include "server/job/actor/stored_message.h"

namespace hone::job {

// The descriptions of the structs, as in common/record/fields.h: all fields but lists of structs or
// texts.
template <record::Is<NetworkSpec> S, typename Visit>
void VisitFields(S& spec, Visit& visit) {
  visit({.proto = "name"}, spec.name);
  visit({.proto = "objective"}, spec.objective);
  visit({.proto = "scheduler"}, spec.scheduler);
  visit({.proto = "patience"}, spec.patience);
  visit({.proto = "early_stop"}, spec.early_stop);
  visit({.proto = "only_missing"}, spec.only_missing);
  visit({.proto = "limits_ns"}, spec.limits_ns);
  visit({.proto = "references_ns"}, spec.references_ns);
}

template <record::Is<NetworkTaskSpec> S, typename Visit>
void VisitFields(S& task, Visit& visit) {
  visit({.proto = "workload"}, task.workload);
  visit({.proto = "weights"}, task.weights);
}

template <record::Is<NetworkTaskState> S, typename Visit>
void VisitFields(S& task, Visit& visit) {
  visit({.proto = "workload_digest"}, task.workload_digest);
  visit({.proto = "op"}, task.op);
  visit({.proto = "flops"}, task.flops);
  visit({.proto = "granted"}, task.granted);
  visit({.proto = "trials"}, task.trials);
  visit({.proto = "earlier_trials"}, task.earlier_trials);
  visit({.proto = "known_latency_ns"}, task.known_latency_ns);
  visit({.proto = "latency_ns"}, task.latency_ns);
  visit({.proto = "default_latency_ns"}, task.default_latency_ns);
  visit({.proto = "gflops"}, task.gflops);
  visit({.proto = "peak_gflops"}, task.peak_gflops);
  visit({.proto = "seconds"}, task.seconds);
  visit({.proto = "confirmed"}, task.confirmed);
  visit({.proto = "disturbed"}, task.disturbed);
  visit({.proto = "closed"}, task.closed);
  visit({.proto = "state"}, task.state);
  visit({.proto = "error"}, task.error);
}

template <record::Is<NetworkEstimate> E, typename Visit>
void VisitFields(E& estimate, Visit& visit) {
  visit({.proto = "wall_ms"}, estimate.wall_ms);
  visit({.proto = "trials"}, estimate.trials);
  visit({.proto = "latency_ns"}, estimate.latency_ns);
}

namespace {

template <typename T>
T ReadAs(const google::protobuf::Message& message) {
  T value;
  // This program wrote the values, so they are not checked and reading cannot fail.
  ReadFields(message, value).IgnoreError();
  return value;
}

}  // namespace

void WriteNetwork(const NetworkSpec& spec, v1::StoredNetwork& message) {
  WriteFields(spec, message);
  for (const std::string& name : spec.network_names) message.add_network_names(name);
  for (const NetworkTaskSpec& task : spec.tasks) WriteFields(task, *message.add_tasks());
}

NetworkSpec ReadNetwork(const v1::StoredNetwork& message) {
  auto spec = ReadAs<NetworkSpec>(message);
  spec.network_names.assign(message.network_names().begin(), message.network_names().end());
  for (const v1::StoredNetworkTask& task : message.tasks()) {
    spec.tasks.push_back(ReadAs<NetworkTaskSpec>(task));
  }
  return spec;
}

void WriteNetworkState(const NetworkState& state, v1::StoredJobState& message) {
  for (const NetworkTaskState& task : state.tasks) {
    v1::StoredNetworkTaskState& stored = *message.add_tasks();
    WriteFields(task, stored);
    for (const ProgressPoint& point : task.curve) {
      stored.add_curve_trials(point.trials);
      stored.add_curve_latencies_ns(point.latency_ns);
    }
  }
  for (const NetworkEstimate& estimate : state.estimates) {
    WriteFields(estimate, *message.add_estimates());
  }
}

NetworkState ReadNetworkState(const v1::StoredJobState& message) {
  NetworkState state;
  for (const v1::StoredNetworkTaskState& stored : message.tasks()) {
    auto& task = state.tasks.emplace_back(ReadAs<NetworkTaskState>(stored));
    const int points = std::min(stored.curve_trials_size(), stored.curve_latencies_ns_size());
    for (int i = 0; i < points; ++i) {
      task.curve.push_back({stored.curve_trials(i), stored.curve_latencies_ns(i)});
    }
  }
  for (const v1::StoredNetworkEstimate& estimate : message.estimates()) {
    state.estimates.push_back(ReadAs<NetworkEstimate>(estimate));
  }
  return state;
}

}  // namespace hone::job
