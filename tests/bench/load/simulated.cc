#include "tests/bench/load/simulated.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/target/target.h"

namespace hone::load {
namespace {

constexpr size_t kArtifactBytes = 8192;
constexpr double kFastestNs = 1e6;
constexpr double kSlowestNs = 10e6;  // also of the default schedule

Digest CandidateOf(const v1::Lease& lease) {
  DigestBuilder builder;
  builder.Add(absl::string_view(lease.space_digest()));
  for (const int64_t decision : lease.decisions()) builder.Add(decision);
  return builder.Finish();
}

}  // namespace

v1::Capabilities SimulatedDevice() {
  const target::Target target = target::DetectHost();
  v1::Capabilities can;
  can.set_host("simulated");
  can.set_target(target.ToText());
  can.set_target_key(target.Key());
  can.set_can_build(true);
  can.set_can_run(true);
  can.set_build_slots(1);
  can.set_peak_gflops(100);
  can.set_peak_gflops_one_core(50);
  can.set_read_gbps(10);
  can.set_memory_bytes(int64_t{4} << 30);
  v1::Environment& environment = *can.mutable_environment();
  environment.set_cpu("simulated board");
  environment.set_isa(target.cpu);
  environment.set_cores(target.cores);
  environment.set_os("Linux");
  environment.set_governor("performance");
  environment.set_compiler("none");
  environment.set_hone_version("load");
  return can;
}

std::string ArtifactName(const v1::Lease& lease) {
  return absl::StrCat(lease.workload_digest(), " ", lease.space_digest(), " ",
                      absl::StrJoin(lease.decisions(), ","), "\n");
}

std::string ArtifactBytes(const std::string& name) {
  std::string bytes;
  while (bytes.size() < kArtifactBytes) bytes += name;
  return bytes;
}

v1::MeasureResult SimulatedResult(const v1::Lease& lease, const std::string& artifact_digest,
                                  uint64_t seed) {
  const Digest candidate = CandidateOf(lease);
  Rng quality(candidate.low);
  Rng noise(seed);
  v1::MeasureResult result;
  v1::BuildFacts& facts = *result.mutable_facts();
  facts.set_compile_ms(30 + 40 * quality.Uniform());
  facts.set_link_ms(8);
  const bool is_default = lease.decisions().empty();
  const double fate = quality.Uniform();
  if (!is_default && fate < 0.03) {
    result.set_outcome(v1::OUTCOME_COMPILE_ERROR);
    result.set_detail("the code generator gave up: 47 vector registers are needed, 32 are there");
    return result;
  }
  facts.set_code_bytes(2000 + static_cast<int64_t>(quality.Below(4000)));
  facts.set_spills(static_cast<int64_t>(quality.Below(4)));
  facts.set_loads_per_fma(1 + quality.Uniform());
  facts.set_program_digest(candidate.ToHex());
  if (!is_default && fate < 0.04) {
    result.set_outcome(v1::OUTCOME_RUN_TIMEOUT);
    result.set_detail("it did not end within 2 s");
    return result;
  }
  const double u = quality.Uniform();
  const double true_ns = is_default ? kSlowestNs : kFastestNs + (kSlowestNs - kFastestNs) * u * u;
  const bool hopeless = lease.best_latency_ns() > 0 && true_ns > 2 * lease.best_latency_ns();
  const int samples = hopeless ? 1 : lease.policy().name() == "confirm" ? 30 : 4;
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    times.push_back(true_ns * (1 + 0.01 * (noise.Uniform() - 0.5)));
    result.add_samples_ns(times.back());
  }
  std::nth_element(times.begin(), times.begin() + samples / 2, times.end());
  result.set_outcome(v1::OUTCOME_OK);
  result.set_latency_ns(times[samples / 2]);
  result.set_dispersion(hopeless ? 0 : 0.005);
  result.set_reference_drift(1 + 0.02 * noise.Uniform());
  result.set_stopped_early(hopeless);
  result.set_artifact_digest(artifact_digest);
  result.set_max_error(0.3);
  v1::MachineState& machine = *result.mutable_machine();
  machine.set_frequency_mhz(2500);
  machine.set_temperature_c(55);
  machine.set_load(0.1);
  return result;
}

}  // namespace hone::load
