// hone dataset build, split and stat.

#include "common/record/dataset.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/command.h"
#include "client/cli/dataset/dataset_build.h"
#include "client/cli/dataset/dataset_builder.h"
#include "client/cli/dataset/dataset_split.h"
#include "client/cli/dataset/dataset_stat.h"
#include "client/cli/dataset/export_reader.h"
#include "client/cli/dataset/text_lines.h"
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/signals.h"
#include "client/cli/output/terminal.h"
#include "client/cli/session.h"
#include "client/cli/target_argument.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "common/base/terminal.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

// What the server knows of its jobs.
class ServerFacts {
 public:
  explicit ServerFacts(Session* session) : session_(session) {}

  // Reads the networks. Errors as for Connection::ListJobs and GetJob.
  absl::Status Read() {
    HONE_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs,
                          session_->connection().ListJobs(/*limit=*/0));
    for (const v1::Job& listed : jobs) {
      if (!listed.has_network()) continue;
      HONE_ASSIGN_OR_RETURN(const v1::Job job, session_->connection().GetJob(listed.id()));
      for (const v1::NetworkTaskProgress& task : job.network().tasks())
        networks_.emplace(task.workload_digest(), job.network().name());
    }
    return absl::OkStatus();
  }

  ExportFacts Get() {
    return {.source = [this](const std::string& job) { return StrategyOf(job); },
            .network =
                [this](const std::string& digest) {
                  const auto found = networks_.find(digest);
                  return found == networks_.end() ? "" : found->second;
                },
            .target_text =
                [host = target::DetectHost()](const std::string& key) {
                  return key == host.Key() ? host.ToText() : "";
                }};
  }

 private:
  const std::string& StrategyOf(const std::string& job) {
    const auto [found, fresh] = strategies_.try_emplace(job);
    if (fresh) {
      const absl::StatusOr<v1::Job> known = session_->connection().GetJob(job);
      if (known.ok()) {
        const std::string& strategy = known->request().strategy();
        found->second = strategy.empty() ? "default" : strategy;
      }
    }
    return found->second;
  }

  Session* const session_;
  std::map<std::string, std::string> networks_;    // by digest of the workload
  std::map<std::string, std::string> strategies_;  // by job
};

// Adds the records of the session's server, with the strategies and networks of its jobs.
absl::Status AddServer(Session& session, const v1::ListRecordsRequest& filter,
                       DatasetBuilder& builder, BuildReport& report) {
  ServerFacts facts(&session);
  HONE_RETURN_IF_ERROR(facts.Read());
  ExportReader reader(&builder, facts.Get());
  TextLines lines(kMostExportLineBytes, [&](const TextLine& line) { return reader.Read(line); });
  HONE_RETURN_IF_ERROR(session.connection().ExportRecords(
      filter, [&](absl::string_view piece) { return lines.Feed(piece); }));
  HONE_RETURN_IF_ERROR(lines.Finish());
  report.unsuitable += reader.unsuitable();
  return reader.Finish();
}

struct BuildOptions {
  std::string output;
  std::vector<std::string> inputs;
  std::string op, network, since;
};

absl::Status BuildDataset(const Globals& globals, const BuildOptions& options) {
  DatasetFilter filter{.op = options.op, .network = options.network};
  if (!options.since.empty()) {
    HONE_ASSIGN_OR_RETURN(const absl::Duration age, ParseDuration(options.since));
    filter.since_unix_ms = absl::ToUnixMillis(absl::Now() - age);
  }
  std::unique_ptr<Session> session;
  if (options.inputs.empty()) {
    HONE_ASSIGN_OR_RETURN(session, Session::Open(globals));
    HONE_ASSIGN_OR_RETURN(filter.target, session->GivenTargetKey());
  } else if (!globals.target.empty()) {
    // A foreign target is no name that Hone knows.
    const absl::StatusOr<TargetArgument> target = ReadTargetArgument(globals.target);
    const absl::StatusOr<std::string> key = target.ok() ? target->Key() : target.status();
    filter.target = key.value_or(globals.target);
  }
  const IncompleteFile incomplete(options.output + ".part");
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> writer,
                        record::DatasetWriter::Create(options.output));
  DatasetBuilder builder(writer.get(), filter);
  BuildReport report;
  if (session != nullptr) {
    v1::ListRecordsRequest request;
    request.set_operator_(filter.op);
    request.set_target(filter.target);
    request.set_since_unix_ms(filter.since_unix_ms);
    request.set_quarantine(v1::QUARANTINE_NONE);
    HONE_RETURN_IF_ERROR(AddServer(*session, request, builder, report));
  }
  for (const std::string& input : options.inputs)
    HONE_RETURN_IF_ERROR(AddInput(input, builder, report));
  for (const std::string& problem : report.problems)
    PrintWrapped(stderr, absl::StrCat("warning: skipped ", problem));
  if (builder.added() == 0) {
    return NothingKnownError(absl::StrCat(
        "no measurement of a search is selected, so no dataset was written",
        builder.left_out() > 0
            ? absl::StrCat("; the options leave out ", Counted(builder.left_out(), "record"))
            : ""));
  }
  HONE_RETURN_IF_ERROR(writer->Finish());
  if (globals.json) {
    Json formats = Json::array();
    for (const auto& [format, count] : report.foreign) {
      formats.push_back({{"format", format},
                         {"record_count", count.records},
                         {"known_workload_count", count.known},
                         {"replayed_count", count.replay.replayed},
                         {"not_replayed", count.replay.not_replayed},
                         {"skipped_count", count.skipped}});
    }
    return PrintJson({{"path", options.output},
                      {"record_count", builder.added()},
                      {"left_out_count", builder.left_out()},
                      {"unsuitable_count", report.unsuitable},
                      {"formats", formats},
                      {"unread_line_count", report.unread_lines}});
  }
  PrintWrapped(absl::StrCat("wrote ", options.output, ": ", Counted(builder.added(), "record")));
  if (report.unsuitable > 0) {
    PrintWrapped(absl::StrCat("left out ", Counted(report.unsuitable, "record"),
                              ": confirmations, default schedules and quarantined measurements"));
  }
  for (const auto& [format, count] : report.foreign) {
    PrintWrapped(absl::StrCat(
        format, ": ", Counted(count.records, "record"), ", ",
        FormatShare(static_cast<double>(count.known), static_cast<double>(count.records)),
        " of workloads that Hone knows; ", count.replay.ToText(), "; ", count.skipped, " skipped"));
  }
  if (report.unread_lines > 0)
    PrintWrapped(absl::StrCat(Counted(report.unread_lines, "line"), " not read"));
  return absl::OkStatus();
}

struct SplitCommand {
  std::string file, prefix;
  SplitOptions split;
};

absl::Status SplitFile(const Globals& globals, const SplitCommand& options) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> dataset,
                        record::Dataset::Open(options.file, record::Dataset::Spaces::kInFile));
  const std::string train_path = options.prefix + "-train.h5",
                    test_path = options.prefix + "-test.h5";
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> train,
                        record::DatasetWriter::Create(train_path));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> test,
                        record::DatasetWriter::Create(test_path));
  HONE_ASSIGN_OR_RETURN(const SplitReport report,
                        SplitDataset(*dataset, options.split, *train, *test));
  HONE_RETURN_IF_ERROR(train->Finish());
  HONE_RETURN_IF_ERROR(test->Finish());
  if (globals.json) {
    return PrintJson({{"train_path", train_path},
                      {"test_path", test_path},
                      {"by", options.split.by},
                      {"train_record_count", report.train_records},
                      {"test_record_count", report.test_records},
                      {"train_count", report.train_groups},
                      {"test_count", report.test_groups}});
  }
  const auto line = [&](const std::string& path, int64_t records, int64_t groups) {
    PrintWrapped(absl::StrCat("wrote ", path, ": ", Counted(records, "record"), " of ",
                              Counted(groups, options.split.by)));
  };
  line(train_path, report.train_records, report.train_groups);
  line(test_path, report.test_records, report.test_groups);
  return absl::OkStatus();
}

absl::Status StatFile(const Globals& globals, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> dataset,
                        record::Dataset::Open(path, record::Dataset::Spaces::kInFile));
  HONE_ASSIGN_OR_RETURN(const DatasetStat stat, StatDataset(*dataset));
  if (globals.json) return PrintJson(StatJson(stat));
  PrintText(StatText(stat, TerminalColumns(STDOUT_FILENO)));
  return absl::OkStatus();
}

void AddBuild(Command& dataset, Globals& globals) {
  Command& command = dataset.AddCommand("build", "Collect measurements of searches in one file");
  auto options = std::make_shared<BuildOptions>();
  command.Add(
      "input", options->inputs,
      "Exports of records (hone records export), datasets, and logs of other systems; none: the "
      "records of the server");
  command.Add("-o,--output", options->output, "HDF5 file to write", {Required(), NotEmpty()});
  command.Add("--op", options->op, "Only workloads with this name", {NotEmpty()});
  command.Add("--network", options->network, "Only tasks of this network, where it is known",
              {NotEmpty()});
  command.Add("--since", options->since,
              "Only records from the last 2h, 30d, …; a number alone means seconds", {NotEmpty()});
  Complete(command, globals,
           "A dataset has the measurements of searches, without confirmations, default schedules "
           "and quarantined measurements. The source of a record is the search strategy that "
           "proposed it or, in an export, the store that it comes from.\n\n"
           "Logs of other systems are read line by line: Ansor and TenSet, AutoTVM (version 0.2), "
           "and MetaSchedule's database_tuning_record.json. Their targets are kept as text, and "
           "their workloads in Hone's language if it is known what they compute. A schedule of "
           "Ansor is replayed as a trace if each of its steps has an exact counterpart; all other "
           "schedules stay in the form of the log. Malformed lines are skipped and counted.\n\n"
           "Examples:\n"
           "  hone dataset build -o all.h5\n"
           "  hone dataset build --op conv2d --since 30d -o conv2d.h5\n"
           "  hone dataset build a.jsonl b.h5 ansor.json -o joined.h5",
           [&globals, options] { return BuildDataset(globals, *options); });
}

void AddSplit(Command& dataset, Globals& globals) {
  Command& command =
      dataset.AddCommand("split", "Divide a dataset into a training part and a test part");
  auto options = std::make_shared<SplitCommand>();
  command.Add("file", options->file, "Dataset", {Required()});
  command.Add("-o,--output", options->prefix, "Writes PREFIX-train.h5 and PREFIX-test.h5",
              {Required(), NotEmpty()});
  command.Add("--by", options->split.by, "What must not be in both parts: task, network or device",
              {OneOf({"task", "network", "device"}), ShowDefault()});
  command.Add("--held-out", options->split.held_out,
              "Share of the tasks, networks or devices in the test part, on average",
              {Range(0.0, 1.0), ShowDefault()});
  command.Add("--seed", options->split.seed, "Another seed makes another choice",
              {Seed(), ShowDefault()});
  command.Add("--held-out-names", options->split.names,
              "Put these into the test part instead; as hone dataset stat names them",
              {Excludes("--held-out"), Excludes("--seed"), OneWordPerUse()});
  CompleteWithoutTarget(
      command, globals,
      "Which part a task, network or device is in depends on a hash of its name and the seed "
      "alone, so it stays there if records are added. A task may also be named by its operator "
      "(all of its tasks) or by the digest of its workload.\n\n"
      "Examples:\n"
      "  hone dataset split all.h5 --by task --held-out 0.2 -o all\n"
      "  hone dataset split all.h5 --by network --held-out-names resnet-50 -o all",
      [&globals, options] { return SplitFile(globals, *options); });
}

void AddStat(Command& dataset, Globals& globals) {
  Command& command = dataset.AddCommand("stat", "Show what a dataset contains");
  auto path = std::make_shared<std::string>();
  command.Add("file", *path, "Dataset", {Required()});
  CompleteWithoutTarget(
      command, globals,
      "Prints tables by device, by network and task, and by source and outcome, and how many "
      "records of other systems' logs were replayed. Medians are accurate to 0.1 %; numbers of "
      "candidates with ~ to a few percent.\n\n"
      "Examples:\n"
      "  hone dataset stat all.h5\n"
      "  hone dataset stat all.h5 --json | jq '.tasks[].record_count'",
      [&globals, path] { return StatFile(globals, *path); });
}

}  // namespace

void AddDataset(Command& app, Globals& globals) {
  Command& dataset =
      app.AddCommand("dataset", "Files of measurements for training and judging cost models");
  dataset.RequireCommand(1, 1);
  dataset.Footer(
      "Examples:\n"
      "  hone dataset build -o all.h5\n"
      "  hone dataset stat all.h5\n"
      "  hone dataset split all.h5 --by task -o all");
  AddBuild(dataset, globals);
  AddSplit(dataset, globals);
  AddStat(dataset, globals);
}

}  // namespace hone::cli
