#include "server/research/lab/recorder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/median.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "server/job/search/task_search.h"
#include "server/research/lab/enumerate.h"
#include "server/research/lab/statistics.h"
#include "server/research/lab/tune_process.h"
#include "server/store/store.h"
#include "server/tuner/space/design_space.h"

namespace hone::lab {
namespace {

constexpr int kDraws = 500;  // random candidates per space that must be among the enumerated ones

// The results of one program's rounds.
struct Rounds {
  std::vector<record::Record> records;
  std::vector<double> run_ms;
};

class Recorder {
 public:
  explicit Recorder(const RecordOptions& options) : options_(options) {}

  absl::StatusOr<RecordedSet> Record() {
    HONE_RETURN_IF_ERROR(ReadSpaces());
    if (options_.only_count) return absl::CancelledError("nothing was measured");
    for (int round = 1; round <= options_.rounds; ++round) {
      HONE_RETURN_IF_ERROR(MeasureRound(round));
      HONE_RETURN_IF_ERROR(CheckComplete());
    }
    Merge();
    HONE_RETURN_IF_ERROR(CheckRecordedSet(set_));
    return std::move(set_);
  }

 private:
  absl::Status ReadSpaces() {
    set_.name = options_.name;
    const target::Target target = target::DetectHost();
    set_.target = target.ToText();
    target_key_ = target.Key();
    absl::flat_hash_map<Digest, int> programs;
    size_t total = 0;
    for (const std::string& file : options_.space_files) {
      HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
      HONE_ASSIGN_OR_RETURN(std::unique_ptr<space::DesignSpace> space,
                            space::DesignSpace::FromText(text, file));
      HONE_ASSIGN_OR_RETURN(const std::vector<Enumerated> all,
                            EnumerateCandidates(*space, options_.limit));
      total += all.size();
      if (total > options_.limit) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the design spaces have more than ", options_.limit,
                         " candidates together: restrict their samplings, or raise --limit"));
      }
      const int number = static_cast<int>(set_.spaces.size());
      std::set<int> own;
      for (const Enumerated& each : all) {
        const auto [program, fresh] =
            programs.emplace(each.program, static_cast<int>(programs.size()));
        own.insert(program->second);
        set_.candidates.push_back({number, each.decisions, program->second});
        index_[job::CandidateDigest({space->digest(), each.decisions})] = program->second;
      }
      HONE_RETURN_IF_ERROR(CheckDraws(*space));
      set_.spaces.push_back(space->text());
      programs_of_space_.push_back(std::move(own));
      std::fprintf(stderr, "%s: %zu vectors, %zu programs\n", file.c_str(), all.size(),
                   programs_of_space_.back().size());
    }
    rounds_.resize(programs.size());
    std::fprintf(stderr, "together: %zu vectors, %zu programs\n", total, programs.size());
    return absl::OkStatus();
  }

  absl::Status CheckDraws(const space::DesignSpace& space) const {
    Rng rng(1);
    for (int i = 0; i < kDraws; ++i) {
      const absl::StatusOr<std::vector<int64_t>> drawn = space.Sample(rng);
      if (!drawn.ok() || !space.Replay(*drawn).ok()) continue;
      if (!index_.contains(job::CandidateDigest({space.digest(), *drawn}))) {
        return absl::InvalidArgumentError(absl::StrCat(
            space.name(), ": a legal candidate was not enumerated; a tile has too many values"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status MeasureRound(int round) {
    const std::string folder = absl::StrCat(options_.work_folder, "/round", round);
    HONE_RETURN_IF_ERROR(MakeDirectories(folder + "/hone"));
    const std::string store = folder + "/hone/hone.db";
    std::set<int> wanted;
    for (size_t i = 0; i < rounds_.size(); ++i) wanted.insert(static_cast<int>(i));
    if (round > 1) {
      wanted = Fastest();
      HONE_RETURN_IF_ERROR(TellOthers(store, wanted));
    }
    HONE_RETURN_IF_ERROR(Read(store, wanted, round));
    for (size_t space = 0; space < set_.spaces.size(); ++space) {
      int64_t left = 0;
      for (const int program : programs_of_space_[space]) {
        left += wanted.contains(program) && Measured(program) < round;
      }
      if (left == 0) continue;
      std::fprintf(stderr, "round %d, space %zu: %ld programs\n", round, space + 1,
                   static_cast<long>(left));
      HONE_RETURN_IF_ERROR(
          RunTune({.program_folder = options_.program_folder,
                   .data_folder = folder,
                   .words = {"--space", absl::StrCat("trace:", options_.space_files[space]),
                             "--strategy", "grid", "--cost-model", "random", "--trials",
                             absl::StrCat(programs_of_space_[space].size() + 1)},  // the default
                   // Confirming finalists is not needed here and takes long.
                   .interrupt_at = "confirming"})
              .status());
      HONE_RETURN_IF_ERROR(Read(store, wanted, round));
    }
    return absl::OkStatus();
  }

  int Measured(int program) const { return static_cast<int>(rounds_[program].records.size()); }

  // Returns the fastest programs by their current medians.
  std::set<int> Fastest() const {
    std::vector<std::pair<double, int>> order;
    for (size_t i = 0; i < rounds_.size(); ++i) {
      const double latency = LatencyNs(rounds_[i]);
      if (latency > 0) order.emplace_back(latency, static_cast<int>(i));
    }
    absl::c_sort(order);
    order.resize(std::min(
        order.size(),
        static_cast<size_t>(std::ceil(options_.top_share * static_cast<double>(rounds_.size())))));
    std::set<int> fastest;
    for (const auto& [latency, program] : order) fastest.insert(program);
    return fastest;
  }

  static double LatencyNs(const Rounds& rounds) {
    std::vector<double> latencies;
    for (const record::Record& record : rounds.records) {
      if (record.result.outcome != record::Outcome::kOk) return 0;
      latencies.push_back(record::SteadyLatencyNs(record.result));
    }
    return latencies.empty() ? 0 : Median(std::move(latencies));
  }

  // Adds the known results of the other programs to a new store, so these are not measured again.
  absl::Status TellOthers(const std::string& path, const std::set<int>& wanted) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStoreOfEndedServer(path));
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> known, store->Query({.page_size = 1}));
    if (!known.empty()) return absl::OkStatus();  // from an interrupted recording
    for (size_t i = 0; i < rounds_.size(); ++i) {
      if (wanted.contains(static_cast<int>(i))) continue;
      record::Record record = rounds_[i].records.front();
      record.id = 0;
      record.job_id = kForeign;
      store->Append(std::move(record), [](absl::StatusOr<record::Record>) {});
    }
    return store->Flush();
  }

  // Reads the results of the wanted programs from one round.
  absl::Status Read(const std::string& path, const std::set<int>& wanted, int round) {
    HONE_ASSIGN_OR_RETURN(std::vector<StoreResult> results, ReadStoreResults(path));
    for (StoreResult& result : results) {
      if (result.record.job_id == kForeign) continue;
      if (result.record.target != target_key_) {
        return absl::AbortedError(
            absl::StrCat("a record of another target, ", result.record.target, ", in ", path));
      }
      const auto program = index_.find(job::CandidateDigest(result.record.candidate));
      if (program == index_.end() || !wanted.contains(program->second) ||
          Measured(program->second) >= round) {
        continue;
      }
      set_.machine = result.record.environment.cpu;
      set_.recorded_unix_ms = result.record.created_unix_ms;
      rounds_[program->second].records.push_back(std::move(result.record));
      rounds_[program->second].run_ms.push_back(result.run_ms);
    }
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    int64_t without = 0;
    for (const Rounds& rounds : rounds_) without += rounds.records.empty();
    if (without == 0) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(without, " of ", rounds_.size(),
                                           " programs have no result; record again to continue"));
  }

  void Merge() {
    for (const Rounds& rounds : rounds_) {
      Measurement measurement;
      measurement.latency_ns = LatencyNs(rounds);
      measurement.rounds = static_cast<int>(rounds.records.size());
      measurement.build_ms =
          rounds.records[0].result.facts.compile_ms + rounds.records[0].result.facts.link_ms;
      measurement.run_ms = rounds.run_ms[0];
      double nearest = INFINITY;
      for (const record::Record& record : rounds.records) {
        if (record.result.outcome != record::Outcome::kOk) {
          measurement.outcome = record.result.outcome;
        }
        const double distance =
            std::abs(record::SteadyLatencyNs(record.result) - measurement.latency_ns);
        if (distance < nearest) {
          nearest = distance;
          measurement.dispersion = record.result.dispersion;
        }
      }
      set_.measurements.push_back(measurement);
    }
  }

  static constexpr char kForeign[] = "recorded before";

  const RecordOptions& options_;
  RecordedSet set_;
  std::string target_key_;
  absl::flat_hash_map<Digest, int> index_;  // program of a candidate
  std::vector<std::set<int>> programs_of_space_;
  std::vector<Rounds> rounds_;  // per program
};

}  // namespace

absl::StatusOr<RecordedSet> RecordSet(const RecordOptions& options) {
  return Recorder(options).Record();
}

}  // namespace hone::lab
