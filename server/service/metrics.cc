#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/listener.h"
#include "server/service/call_observer.h"

namespace hone::service {
namespace {

using prometheus::ClientMetric;
using prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr int kCodes = 17;  // number of gRPC's codes

const Histogram::BucketBoundaries& Seconds() {
  static const auto& bounds = *new Histogram::BucketBoundaries{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30};
  return bounds;
}

// Returns the resident memory of this process.
int64_t MemoryBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

MetricFamily FamilyOf(const ServerMetric& source) {
  MetricFamily family{.name = source.name,
                      .help = source.help,
                      .type = source.is_total ? MetricType::Counter : MetricType::Gauge,
                      .metric = {}};
  for (const auto& [value, count] : source.values) {
    ClientMetric& metric = family.metric.emplace_back();
    if (*source.label != '\0') metric.label.push_back({source.label, value});
    (source.is_total ? metric.counter.value : metric.gauge.value) = static_cast<double>(count);
  }
  return family;
}

// The metrics whose values are requested at a scrape.
class Gauges final : public prometheus::Collectable {
 public:
  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families = {FamilyOf({"process_resident_memory_bytes",
                                                    "Resident memory of the server.",
                                                    "",
                                                    {{"", MemoryBytes()}}})};
    absl::MutexLock lock(&mutex_);
    if (read_ == nullptr) return families;
    for (const ServerMetric& metric : read_()) families.push_back(FamilyOf(metric));
    return families;
  }

  void Watch(std::function<std::vector<ServerMetric>()> read) {
    absl::MutexLock lock(&mutex_);
    read_ = std::move(read);
  }

 private:
  mutable absl::Mutex mutex_;
  std::function<std::vector<ServerMetric>()> read_ ABSL_GUARDED_BY(mutex_);
};

class PrometheusMetrics final : public Metrics {
 public:
  explicit PrometheusMetrics(const std::string& address)
      : registry_(std::make_shared<prometheus::Registry>()),
        gauges_(std::make_shared<Gauges>()),
        calls_(prometheus::BuildCounter()
                   .Name("hone_calls_total")
                   .Help("Calls that have ended, by method and code.")
                   .Register(*registry_)),
        call_seconds_(
            prometheus::BuildHistogram()
                .Name("hone_call_seconds")
                .Help(
                    "Time from a call's arrival to its status, including the wait of a long poll.")
                .Register(*registry_)),
        refused_calls_(prometheus::BuildCounter()
                           .Name("hone_refused_calls_total")
                           .Help("Refused calls, by method and reason.")
                           .Register(*registry_)),
        refused_connections_(prometheus::BuildCounter()
                                 .Name("hone_refused_connections_total")
                                 .Help("Connections refused or ended because of a limit.")
                                 .Register(*registry_)),
        trials_(prometheus::BuildCounter()
                    .Name("hone_trials_total")
                    .Help("Results that are durable, by outcome.")
                    .Register(*registry_)),
        synchronize_(prometheus::BuildHistogram()
                         .Name("hone_synchronize_handling_seconds")
                         .Help("Time for handling a Synchronize call, without the time it is held.")
                         .Register(*registry_)
                         .Add({}, Seconds())),
        last_backup_(
            prometheus::BuildGauge()
                .Name("hone_last_backup_timestamp_seconds")
                .Help("Time of the last complete backup since the server started; 0: none.")
                .Register(*registry_)
                .Add({})),
        exposer_(address, /*num_threads=*/1) {
    exposer_.RegisterCollectable(registry_);
    exposer_.RegisterCollectable(gauges_);
  }

  int port() const override {
    const std::vector<int> ports = exposer_.GetListeningPorts();
    return ports.empty() ? 0 : ports[0];
  }
  void Watch(std::function<std::vector<ServerMetric>()> read) override {
    gauges_->Watch(std::move(read));
  }

  void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) override {
    Histogram* seconds = nullptr;
    prometheus::Counter* calls = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      Method& known = methods_[method];
      const auto name = [&] { return std::string(method.substr(method.rfind('/') + 1)); };
      if (known.seconds == nullptr) {
        known.seconds = &call_seconds_.Add({{"method", name()}}, Seconds());
      }
      const int number = static_cast<int>(code);
      prometheus::Counter*& counter = known.calls[std::clamp(number, 0, kCodes - 1)];
      if (counter == nullptr) {
        counter = &calls_.Add({{"method", name()}, {"code", absl::StrCat(number)}});
      }
      seconds = known.seconds;
      calls = counter;
    }
    if (code == grpc::StatusCode::OK && absl::EndsWith(method, "/BackupStore")) {
      last_backup_.SetToCurrentTime();
    }
    calls->Increment();
    seconds->Observe(absl::ToDoubleSeconds(took));
  }
  void OnRefusal(absl::string_view method, absl::string_view reason) override {
    refused_calls_
        .Add({{"method", std::string(method.substr(method.rfind('/') + 1))},
              {"reason", std::string(reason)}})
        .Increment();
  }
  void OnRefusedConnection(absl::string_view reason) override {
    refused_connections_.Add({{"reason", std::string(reason)}}).Increment();
  }
  void OnSynchronize(absl::Duration handling) override {
    synchronize_.Observe(absl::ToDoubleSeconds(handling));
  }
  void OnResult(record::Outcome outcome) override {
    trials_.Add({{"outcome", std::string(record::OutcomeName(outcome))}}).Increment();
  }

 private:
  // The counters of a method, which are looked up only once.
  struct Method {
    Histogram* seconds = nullptr;
    std::array<prometheus::Counter*, kCodes> calls = {};  // by code
  };

  const std::shared_ptr<prometheus::Registry> registry_;
  const std::shared_ptr<Gauges> gauges_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Method> methods_ ABSL_GUARDED_BY(mutex_);
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<Histogram>& call_seconds_;
  prometheus::Family<prometheus::Counter>& refused_calls_;
  prometheus::Family<prometheus::Counter>& refused_connections_;
  prometheus::Family<prometheus::Counter>& trials_;
  Histogram& synchronize_;
  prometheus::Gauge& last_backup_;
  prometheus::Exposer exposer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Metrics>> Metrics::Start(const rpc::Address& address) {
  if (address.IsUnix()) {
    return absl::InvalidArgumentError(
        "metrics-listen: Prometheus needs a TCP address; give host:port");
  }
  // The library's HTTP server does not look up host names.
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const rpc::Address bound{.host = host, .port = address.port};
  if (const absl::Status free = rpc::CheckPortFree(bound); !free.ok()) {
    return absl::Status(free.code(), absl::StrCat("metrics-listen: ", free.message()));
  }
  const std::string text = bound.ToText();
  try {
    return std::make_unique<PrometheusMetrics>(text);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("metrics-listen: cannot listen on ", text, ": ", error.what()));
  }
}

}  // namespace hone::service
