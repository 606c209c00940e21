// Measuring the sample.

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "common/record/dataset.h"
#include "common/target/device_list.h"
#include "common/target/target.h"
#include "server/job/actor/job_codec.h"
#include "server/job/search/draft_work.h"
#include "server/research/lab/judge.h"
#include "server/research/lab/modelled.h"
#include "server/research/lab/sample.h"
#include "server/research/lab/tune_process.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/space/maker.h"

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

absl::Status Tune(const CollectOptions& options, const std::string& data_folder,
                  const std::string& file, const Phase& phase) {
  return RunTune({.program_folder = options.program_folder,
                  .data_folder = data_folder,
                  .words = {file, "--strategy", phase.strategy, "--cost-model", phase.cost_model,
                            "--trials", absl::StrCat(phase.trials), "--target", options.target,
                            "--seed", "1"},
                  .interrupt_at = "confirming"})
      .status();
}

std::string FolderOf(const SampleTask& task, const CollectOptions& options) {
  return absl::StrCat(options.work_folder, "/", DigestOf(task.workload).ToHex().substr(0, 16));
}

constexpr char kStore[] = "/hone/hone.db";

// Every task has its own store, so that its draft has learned nothing from the others.
absl::Status Measure(const SampleTask& task, const CollectOptions& options) {
  const std::string folder = FolderOf(task, options);
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  const std::string file = folder + "/workload.hone";
  HONE_RETURN_IF_ERROR(WriteFileAtomically(file, task.workload));
  for (const Phase& phase :
       {Phase{"random", "random", options.uniform}, Phase{"draft", "random", options.drafted},
        Phase{"portfolio", "xgboost", options.searched}}) {
    const std::string done = absl::StrCat(folder, "/", phase.strategy);
    if (phase.trials == 0 || ReadFile(done).ok()) continue;
    HONE_RETURN_IF_ERROR(Tune(options, folder, file, phase));
    HONE_RETURN_IF_ERROR(WriteFileAtomically(done, ""));
  }
  return absl::OkStatus();
}

struct TaskName {
  std::string workload, network;
};
// Returns the target of a GPU of this machine; nullopt for others, where every task has a design
// space.
absl::StatusOr<std::optional<target::Target>> GpuTarget(const CollectOptions& options) {
  if (target::InterfaceOfDevice(options.target) == nullptr) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(
      const ProgramResult listed,
      RunProgram({.words = {options.program_folder + "/hone-runner", "--list-devices"}}));
  HONE_ASSIGN_OR_RETURN(const target::DeviceList list, target::DeviceList::FromJson(listed.output));
  HONE_ASSIGN_OR_RETURN(const target::ListedDevice device, list.Find(options.target));
  return device.target;
}

// Every job has the calibration of its day, but a sample has one target.
absl::StatusOr<record::DatasetTarget> OfKind(record::DatasetTarget described) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(described.text));
  described.text = target.KindText();
  return described;
}

// Copies records from a store to a dataset.
class Packer {
 public:
  explicit Packer(record::DatasetWriter* writer) : writer_(writer) {}

  // Adds the results of a task. `source`: of the records, instead of the strategy's name, unless it
  // is "".
  absl::Status Add(store::Store& store, const TaskName& task, const std::string& source = "") {
    jobs_.clear();  // every store counts its jobs from 1
    store::RecordQuery query{.page_size = 1000};
    while (true) {
      HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store.Query(query));
      for (const record::Record& record : page) {
        query.after_id = record.id;
        if (record.policy.name != "screen" || record.is_default || record.quarantined) continue;
        HONE_RETURN_IF_ERROR(Add(store, record, task, source));
      }
      if (static_cast<int>(page.size()) < query.page_size) return absl::OkStatus();
    }
  }

 private:
  absl::Status Add(store::Store& store, const record::Record& record, const TaskName& task,
                   const std::string& source) {
    auto job = jobs_.find(record.job_id);
    if (job == jobs_.end()) {
      HONE_ASSIGN_OR_RETURN(const store::JobRow row, store.GetJob(record.job_id));
      HONE_ASSIGN_OR_RETURN(job::JobSpec spec, job::DecodeSpec(row.request));
      job = jobs_.emplace(record.job_id, std::move(spec)).first;
    }
    const job::JobSpec& spec = job->second;
    if (spec.workload != task.workload) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(const std::string* const space,
                          SpaceText(store, record.candidate.space_digest));
    const bool ok = record.result.outcome == record::Outcome::kOk;
    HONE_ASSIGN_OR_RETURN(const record::DatasetTarget of_kind,
                          OfKind({spec.target, record.environment.cpu}));
    return writer_->Append({.target = writer_->Target(of_kind),
                            .task = writer_->Task({spec.workload, task.network, spec.tolerance}),
                            .space = writer_->Space(*space),
                            .source = writer_->Source(source.empty() ? spec.strategy : source),
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

constexpr char kLearnedSource[] = "learned";
constexpr uint32_t kParts =
    2;  // of the development tasks: each is measured with what the other taught

// Returns the tasks of a dataset without results of kLearnedSource.
absl::StatusOr<std::set<std::string>> TasksWithoutLearned(record::Dataset& dataset) {
  std::set<std::string> without;
  for (const record::DatasetTask& task : dataset.tasks()) without.insert(task.workload);
  const auto source = absl::c_find(dataset.sources(), kLearnedSource) - dataset.sources().begin();
  for (int64_t first = 0; first < dataset.size(); first += record::kDatasetPage) {
    HONE_ASSIGN_OR_RETURN(const std::vector<record::DatasetRecord> page,
                          dataset.Read(first, record::kDatasetPage));
    for (const record::DatasetRecord& record : page) {
      if (record.source == source) without.erase(dataset.tasks()[record.task].workload);
    }
  }
  return without;
}

// Which part of the development tasks a task belongs to.
uint32_t PartOf(const std::string& workload) {
  return static_cast<uint32_t>(DigestOf(workload).low % kParts);
}

// Learns a draft from the development tasks of the other parts; kParts: from all of them.
absl::StatusOr<std::unique_ptr<cost_model::CostModel>> LearnWithout(uint32_t part,
                                                                    const Sample& sample) {
  std::vector<const JudgedTask*> train;
  for (const JudgedTask& task : sample.tasks)
    if (!task.held_out && PartOf(task.workload) != part) train.push_back(&task);
  return TrainModel(job::kLearnedDraft, sample, train);
}

// Writes a store that knows nothing but a draft that was learned from development tasks of a
// sample.
absl::Status WriteStoreWithDraft(const std::string& path, const Sample& sample,
                                 const cost_model::CostModel& model) {
  HONE_ASSIGN_OR_RETURN(const target::Target target, target::Target::FromText(sample.target));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::OpenSqliteStore(path));
  store::ModelRow row{.key = {.name = job::kLearnedDraft,
                              .feature_set = job::kLearnedDraft,
                              .target = target.Key()},
                      .created_unix_ms = absl::ToUnixMillis(absl::Now()),
                      .metrics = model.Summary(),
                      .target_text = sample.target};
  for (const JudgedTask& task : sample.tasks) {
    if (task.held_out) continue;
    ++row.workloads;
    row.records += static_cast<int64_t>(task.latency_ns.size());
  }
  HONE_ASSIGN_OR_RETURN(row.bytes, model.Save());
  HONE_ASSIGN_OR_RETURN(const cost_model::ModelHeader header,
                        cost_model::ReadModelHeader(row.bytes));
  row.version = header.version;
  absl::Status written;
  absl::Notification done;
  store->PutModel(std::move(row), [&](const absl::StatusOr<int64_t>& id) {
    written = id.status();
    done.Notify();
  });
  done.WaitForNotification();
  return written;
}

// Measures each task with a draft that was learned from other development tasks, and adds the
// results to the dataset.
absl::Status CollectLearned(const CollectOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> before,
                        record::Dataset::Open(options.out));
  HONE_ASSIGN_OR_RETURN(const std::set<std::string> without, TasksWithoutLearned(*before));
  std::vector<const SampleTask*> tasks;
  for (const SampleTask& task : options.tasks)
    if (without.contains(task.workload)) tasks.push_back(&task);
  if (tasks.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const Sample sample,
                        ReadSample(options.out, {job::kLearnedDraft}, /*threads=*/2));
  std::vector<std::unique_ptr<cost_model::CostModel>> models;  // without a part; of all
  for (uint32_t left_out = 0; left_out <= kParts; ++left_out) {
    HONE_ASSIGN_OR_RETURN(models.emplace_back(), LearnWithout(left_out, sample));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> writer,
                        record::DatasetWriter::Create(options.out));
  Packer packer(writer.get());
  HONE_RETURN_IF_ERROR(CopyRecords(*before, *writer));
  for (const SampleTask* task : tasks) {
    const std::string folder = absl::StrCat(FolderOf(*task, options), "-learned");
    const std::string path = folder + kStore, done = folder + "/done";
    if (!ReadFile(done).ok()) {
      std::fprintf(stderr, "with a learned draft: %s\n", task->name.c_str());
      std::error_code ignored;  // an interrupted run may have left files
      std::filesystem::remove_all(folder, ignored);
      HONE_RETURN_IF_ERROR(MakeDirectories(folder + "/hone"));
      HONE_RETURN_IF_ERROR(WriteStoreWithDraft(
          path, sample, *models[task->held_out ? kParts : PartOf(task->workload)]));
      const std::string file = folder + "/workload.hone";
      HONE_RETURN_IF_ERROR(WriteFileAtomically(file, task->workload));
      HONE_RETURN_IF_ERROR(Tune(options, folder, file, {"draft", "random", options.learned}));
      HONE_RETURN_IF_ERROR(WriteFileAtomically(done, ""));
    }
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStoreOfEndedServer(path));
    HONE_RETURN_IF_ERROR(packer.Add(*store, {task->workload, task->network}, kLearnedSource));
  }
  return writer->Finish();
}

// Returns the target of a CPU that need not be here; nullopt: `hone tune` measures on a device of
// this machine.
absl::StatusOr<std::optional<target::Target>> DistantCpu(const CollectOptions& options) {
  if (options.target == "native" || target::InterfaceOfDevice(options.target) != nullptr)
    return std::nullopt;
  HONE_ASSIGN_OR_RETURN(target::Target target, absl::StartsWith(options.target, "target ")
                                                   ? target::Target::FromText(options.target)
                                                   : target::TargetByName(options.target));
  if (target.kind == target::Kind::kCpu) return target;
  return absl::InvalidArgumentError(absl::StrCat(
      "--target ", options.target,
      ": a GPU's cost is not modelled; name a device of this machine, such as opencl, or a CPU"));
}

}  // namespace

absl::Status CheckKind(const record::Dataset& dataset, const std::string& path, bool modelled) {
  for (const record::DatasetTarget& target : dataset.targets()) {
    if (target.IsModelled() == modelled) continue;
    return absl::InvalidArgumentError(
        modelled ? absl::StrCat(path, " has measurements; give modelled costs another file")
                 : absl::StrCat(path, " has modelled costs, which are not measurements"));
  }
  return absl::OkStatus();
}

absl::Status CopyRecords(record::Dataset& from, record::DatasetWriter& to) {
  for (int64_t first = 0; first < from.size(); first += record::kDatasetPage) {
    HONE_ASSIGN_OR_RETURN(std::vector<record::DatasetRecord> page,
                          from.Read(first, record::kDatasetPage));
    for (record::DatasetRecord& record : page) {
      HONE_ASSIGN_OR_RETURN(const record::DatasetTarget of_kind,
                            OfKind(from.targets()[record.target]));
      record.target = to.Target(of_kind);
      record.task = to.Task(from.tasks()[record.task]);
      record.space = to.Space(from.spaces()[record.space]);
      record.source = to.Source(from.sources()[record.source]);
      HONE_RETURN_IF_ERROR(to.Append(record));
    }
  }
  return absl::OkStatus();
}

absl::Status Learn(const std::string& dataset, const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    return absl::InvalidArgumentError(absl::StrCat(path, " exists; name a new store"));
  {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> opened,
                          record::Dataset::Open(dataset));
    HONE_RETURN_IF_ERROR(CheckKind(*opened, dataset, /*modelled=*/false));
  }
  HONE_ASSIGN_OR_RETURN(const Sample sample,
                        ReadSample(dataset, {job::kLearnedDraft}, /*threads=*/2));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<cost_model::CostModel> model,
                        LearnWithout(kParts, sample));
  return WriteStoreWithDraft(path, sample, *model);
}

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
    if (task.ok()) {
      HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(task->workload));
      if (!known.insert(workload.StructuralDigest().ToHex()).second)
        task = absl::InvalidArgumentError("this task occurs twice");
    }
    if (!task.ok()) {
      return absl::Status(task.status().code(), absl::StrCat(list, ":", number, ": ", words, ": ",
                                                             task.status().message()));
    }
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

std::string WhyNoSpace(const SampleTask& task, const target::Target& target) {
  const absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(task.workload);
  if (!workload.ok()) return std::string(workload.status().message());
  const auto spaces = space::MakeSpaces(
      {.workload = std::make_shared<const ir::Workload>(*workload), .target = &target}, "");
  return std::string(spaces.status().message());
}

absl::Status Collect(const CollectOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::optional<target::Target> distant, DistantCpu(options));
  if (distant.has_value()) return CollectModelled(options, *distant);
  HONE_ASSIGN_OR_RETURN(const std::optional<target::Target> gpu, GpuTarget(options));
  std::set<std::string> measured, unfinished;
  std::unique_ptr<record::Dataset> before;
  if (std::filesystem::exists(options.out)) {
    HONE_ASSIGN_OR_RETURN(before, record::Dataset::Open(options.out));
    HONE_RETURN_IF_ERROR(CheckKind(*before, options.out, /*modelled=*/false));
    for (const record::DatasetTask& task : before->tasks()) measured.insert(task.workload);
  }
  HONE_RETURN_IF_ERROR(MakeDirectories(options.work_folder));
  size_t number = 0, failed = 0;
  absl::Status failure;
  for (const SampleTask& task : options.tasks) {
    ++number;
    if (measured.contains(task.workload)) continue;
    std::fprintf(stderr, "task %zu of %zu: %s\n", number, options.tasks.size(), task.name.c_str());
    if (const std::string why = gpu.has_value() ? WhyNoSpace(task, *gpu) : ""; !why.empty()) {
      std::fprintf(stderr, "skipped: %s\n", why.c_str());
      continue;
    }
    const absl::Status status = Measure(task, options);
    if (status.ok()) continue;
    std::fprintf(stderr, "failed: %s\n", std::string(status.message()).c_str());
    failure = status;
    ++failed;
    unfinished.insert(task.workload);
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> writer,
                        record::DatasetWriter::Create(options.out));
  Packer packer(writer.get());
  if (before != nullptr) HONE_RETURN_IF_ERROR(CopyRecords(*before, *writer));
  for (const SampleTask& task : options.tasks) {
    const std::string path = FolderOf(task, options) + kStore;
    // The dataset has only tasks that were measured to the end.
    if (measured.contains(task.workload) || unfinished.contains(task.workload) ||
        !std::filesystem::exists(path))
      continue;
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, OpenStoreOfEndedServer(path));
    HONE_RETURN_IF_ERROR(packer.Add(*store, {task.workload, task.network}));
  }
  HONE_RETURN_IF_ERROR(writer->Finish());
  if (failed == 0) return options.learned > 0 ? CollectLearned(options) : absl::OkStatus();
  return absl::Status(
      failure.code(),
      absl::StrCat(failed, " of ", options.tasks.size(),
                   " tasks failed and are not in the dataset; the same command measures them: ",
                   failure.message()));
}

}  // namespace hone::lab
