// Measuring the sample.

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/record/dataset.h"
#include "server/job/actor/job_codec.h"
#include "server/research/lab/sample.h"
#include "server/research/lab/tune_process.h"
#include "server/store/store.h"

namespace hone::lab {
namespace {

constexpr char kSuffix[] = ".hone";

absl::StatusOr<SampleTask> ReadTask(const std::string& line, const std::string& folder) {
  SampleTask task{.name = line};
  if (absl::EndsWith(line, kSuffix)) {
    task.network = line.substr(0, line.find('/'));
    HONE_ASSIGN_OR_RETURN(task.workload, ReadFile(absl::StrCat(folder, "/", line)));
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(task.workload));
    task.workload = workload.ToText();
    task.family = task.network;
  } else {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    HONE_ASSIGN_OR_RETURN(const ir::Workload workload,
                          op::BuildWorkload(words[0], absl::MakeConstSpan(words).subspan(1)));
    task.workload = workload.ToText();
    task.family = words[0];
  }
  HONE_ASSIGN_OR_RETURN(task.held_out, IsHeldOut(task.workload));
  return task;
}

// One `hone tune` of a task.
struct Phase {
  const char* strategy;
  const char* cost_model;
  int trials;
};

absl::Status Measure(const SampleTask& task, const CollectOptions& options) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(task.workload));
  const std::string folder =
      absl::StrCat(options.work_folder, "/", workload.StructuralDigest().ToHex().substr(0, 16));
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string file = folder + "/workload.hone";
  HONE_RETURN_IF_ERROR(WriteFileAtomically(file, task.workload));
  for (const Phase& phase :
       {Phase{"random", "random", options.uniform}, Phase{"draft", "random", options.drafted},
        Phase{"portfolio", "xgboost", options.searched}}) {
    const std::string done = absl::StrCat(folder, "/", phase.strategy);
    if (phase.trials == 0 || ReadFile(done).ok()) continue;
    HONE_RETURN_IF_ERROR(
        RunTune({.program_folder = options.program_folder,
                 .data_folder = options.work_folder,
                 .words = {file, "--strategy", phase.strategy, "--cost-model", phase.cost_model,
                           "--trials", absl::StrCat(phase.trials), "--target", options.target,
                           "--seed", "1"},
                 .interrupt_at = "confirming"})
            .status());
    HONE_RETURN_IF_ERROR(WriteFileAtomically(done, ""));
  }
  return absl::OkStatus();
}

// Copies records between datasets, or from a store to a dataset.
class Packer {
 public:
  explicit Packer(record::DatasetWriter* writer) : writer_(writer) {}

  absl::Status Add(record::Dataset& dataset) {
    for (int64_t first = 0; first < dataset.size(); first += record::kDatasetPage) {
      HONE_ASSIGN_OR_RETURN(std::vector<record::DatasetRecord> page,
                            dataset.Read(first, record::kDatasetPage));
      for (record::DatasetRecord& record : page) {
        record.target = writer_->Target(dataset.targets()[record.target]);
        record.task = writer_->Task(dataset.tasks()[record.task]);
        record.space = writer_->Space(dataset.spaces()[record.space]);
        record.source = writer_->Source(dataset.sources()[record.source]);
        HONE_RETURN_IF_ERROR(writer_->Append(record));
      }
    }
    return absl::OkStatus();
  }

  // `networks`: the network of each workload, by the text of the workload.
  absl::Status Add(store::Store& store, const std::map<std::string, std::string>& networks) {
    store::RecordQuery query{.page_size = 1000};
    while (true) {
      HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store.Query(query));
      for (const record::Record& record : page) {
        query.after_id = record.id;
        if (record.policy.name != "screen" || record.is_default || record.quarantined) continue;
        HONE_RETURN_IF_ERROR(Add(store, record, networks));
      }
      if (static_cast<int>(page.size()) < query.page_size) return absl::OkStatus();
    }
  }

 private:
  absl::Status Add(store::Store& store, const record::Record& record,
                   const std::map<std::string, std::string>& networks) {
    auto job = jobs_.find(record.job_id);
    if (job == jobs_.end()) {
      HONE_ASSIGN_OR_RETURN(const store::JobRow row, store.GetJob(record.job_id));
      HONE_ASSIGN_OR_RETURN(job::JobSpec spec, job::DecodeSpec(row.request));
      job = jobs_.emplace(record.job_id, std::move(spec)).first;
    }
    const job::JobSpec& spec = job->second;
    const auto network = networks.find(spec.workload);
    if (network == networks.end()) return absl::OkStatus();  // not a task of the list
    HONE_ASSIGN_OR_RETURN(const std::string* const space,
                          SpaceText(store, record.candidate.space_digest));
    const bool ok = record.result.outcome == record::Outcome::kOk;
    return writer_->Append({.target = writer_->Target({spec.target, record.environment.cpu}),
                            .task = writer_->Task({spec.workload, network->second, spec.tolerance}),
                            .space = writer_->Space(*space),
                            .source = writer_->Source(spec.strategy),
                            .decisions = record.candidate.decisions,
                            .outcome = record.result.outcome,
                            .latency_ns = ok ? record::SteadyLatencyNs(record.result) : 0,
                            .dispersion = record.result.dispersion,
                            .created_unix_ms = record.created_unix_ms});
  }

  absl::StatusOr<const std::string*> SpaceText(store::Store& store, const std::string& digest) {
    auto found = spaces_.find(digest);
    if (found == spaces_.end()) {
      HONE_ASSIGN_OR_RETURN(std::string text, store.GetText(digest));
      found = spaces_.emplace(digest, std::move(text)).first;
    }
    return &found->second;
  }

  record::DatasetWriter* const writer_;
  std::map<std::string, job::JobSpec> jobs_;
  std::map<std::string, std::string> spaces_;
};

}  // namespace

absl::StatusOr<bool> IsHeldOut(const std::string& workload) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload parsed, ir::ParseWorkload(workload));
  const char last = parsed.StructuralDigest().ToHex().back();
  return (last >= 'a' ? last - 'a' + 10 : last - '0') % 2 == 1;
}

absl::StatusOr<std::vector<SampleTask>> ReadSampleTasks(const std::string& list) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(list));
  const std::string folder = std::filesystem::path(list).parent_path();
  std::vector<SampleTask> tasks;
  std::set<std::string> known;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::string words(absl::StripAsciiWhitespace(line));
    if (words.empty() || words[0] == '#') continue;
    absl::StatusOr<SampleTask> task = ReadTask(words, folder);
    if (task.ok() && !known.insert(task->workload).second)
      task = absl::InvalidArgumentError("this task occurs twice");
    if (!task.ok()) {
      return absl::Status(task.status().code(), absl::StrCat(list, ":", number, ": ", words, ": ",
                                                             task.status().message()));
    }
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

absl::Status Collect(const CollectOptions& options) {
  std::map<std::string, std::string> networks;
  for (const SampleTask& task : options.tasks) networks[task.workload] = task.network;
  std::set<std::string> measured;
  std::unique_ptr<record::Dataset> before;
  if (std::filesystem::exists(options.out)) {
    HONE_ASSIGN_OR_RETURN(before, record::Dataset::Open(options.out));
    for (const record::DatasetTask& task : before->tasks()) measured.insert(task.workload);
  }
  HONE_RETURN_IF_ERROR(MakeDirectories(options.work_folder));
  size_t number = 0;
  for (const SampleTask& task : options.tasks) {
    ++number;
    if (measured.contains(task.workload)) continue;
    std::fprintf(stderr, "task %zu of %zu: %s\n", number, options.tasks.size(), task.name.c_str());
    HONE_RETURN_IF_ERROR(Measure(task, options));
  }
  const std::string path = options.work_folder + "/hone/hone.db";
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> writer,
                        record::DatasetWriter::Create(options.out));
  Packer packer(writer.get());
  if (before != nullptr) HONE_RETURN_IF_ERROR(packer.Add(*before));
  for (const std::string& workload : measured) networks.erase(workload);
  if (std::filesystem::exists(path)) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStoreOfEndedServer(path));
    HONE_RETURN_IF_ERROR(packer.Add(*store, networks));
  }
  return writer->Finish();
}

}  // namespace hone::lab
