#include "server/research/lab/modelled.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "common/record/dataset.h"
#include "server/job/actor/compiler_environment.h"

namespace hone::lab {
namespace {

constexpr int kBatch = 16;  // candidates of one proposal, as in a job
constexpr uint64_t kSeed = 1;

struct Drawn {
  record::Candidate candidate;
  std::string source;
};

// Adds the first candidates of a strategy, to which those before are known.
absl::Status Draw(const job::TaskSpaces& spaces, const std::string& strategy, int count,
                  std::vector<Drawn>& drawn) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<search::SearchStrategy> search,
                        spaces.CreateStrategy(strategy, kSeed, /*quick_start=*/false));
  for (const Drawn& known : drawn) {
    const search::Measured result{known.candidate, record::Outcome::kInvalid, 0};
    search->Tell(absl::MakeConstSpan(&result, 1));
  }
  const size_t wanted = drawn.size() + static_cast<size_t>(count);
  for (uint64_t event = 0; drawn.size() < wanted; ++event) {
    const int some = std::min<int>(kBatch, static_cast<int>(wanted - drawn.size()));
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Candidate> proposed,
                          search->Propose(some, event, /*model=*/nullptr));
    if (proposed.empty()) break;  // the spaces are exhausted
    for (const record::Candidate& candidate : proposed) drawn.push_back({candidate, strategy});
  }
  return absl::OkStatus();
}

// Draws and models the candidates of a task, and writes them to a dataset of their own.
absl::Status ModelTask(const SampleTask& task, const CollectOptions& options,
                       const target::Target& target, const job::TaskEnvironment& environment,
                       const std::string& path) {
  HONE_ASSIGN_OR_RETURN(
      const std::unique_ptr<job::TaskSpaces> spaces,
      environment.Open(task.workload, target.ToText(), /*space=*/"", /*tolerance=*/0));
  std::vector<Drawn> drawn;
  HONE_RETURN_IF_ERROR(Draw(*spaces, "random", options.uniform, drawn));
  HONE_RETURN_IF_ERROR(Draw(*spaces, "draft", options.drafted, drawn));
  std::map<std::string, std::string> texts;  // of design spaces, by digest
  for (const job::SpaceInfo& space : spaces->spaces()) texts[space.digest] = space.text;
  std::vector<std::string> traces;
  for (const Drawn& each : drawn) {
    HONE_ASSIGN_OR_RETURN(
        traces.emplace_back(),
        environment.TraceText(texts[each.candidate.space_digest], each.candidate.decisions));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<double> cycles,
                        ModelCycles(options.program_folder, target.ToText(), traces));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> writer,
                        record::DatasetWriter::Create(path));
  const int32_t modelled =
      writer->Target({target.KindText(), absl::StrCat(record::kModelled, target.cpu, " with ",
                                                      target.cores, " cores")});
  const int32_t number = writer->Task({task.workload, task.network, /*tolerance=*/0});
  for (size_t i = 0; i < drawn.size(); ++i) {
    const bool ok = cycles[i] > 0;
    HONE_RETURN_IF_ERROR(
        writer->Append({.target = modelled,
                        .task = number,
                        .space = writer->Space(texts[drawn[i].candidate.space_digest]),
                        .source = writer->Source(drawn[i].source),
                        .decisions = drawn[i].candidate.decisions,
                        .outcome = ok ? record::Outcome::kOk : record::Outcome::kInvalid,
                        .latency_ns = cycles[i],
                        .created_unix_ms = absl::ToUnixMillis(absl::Now())}));
  }
  return writer->Finish();
}

}  // namespace

absl::StatusOr<std::vector<double>> ModelCycles(const std::string& program_folder,
                                                const std::string& target,
                                                const std::vector<std::string>& traces) {
  std::string lines;
  for (const std::string& trace : traces)
    absl::StrAppend(&lines, nlohmann::json{{"trace", trace}}.dump(), "\n");
  HONE_ASSIGN_OR_RETURN(const ProgramResult result,
                        RunProgram({.words = {program_folder + "/hone-builder", "cost", "--target",
                                              target, "--lines", "-"},
                                    .input = std::move(lines)}));
  const std::vector<std::string> answers =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(result.output), '\n', absl::SkipEmpty());
  if (!result.ok() || answers.size() != traces.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("hone-builder answered ", answers.size(), " of ", traces.size(),
                     " schedules: ", absl::StripTrailingAsciiWhitespace(result.errors)));
  }
  std::vector<double> cycles;
  for (const std::string& answer : answers) {
    const nlohmann::json json = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
    const bool ok = json.is_object() && json.contains("cycles") && json["cycles"].is_number();
    cycles.push_back(ok ? json["cycles"].get<double>() : 0);
  }
  return cycles;
}

absl::Status CollectModelled(const CollectOptions& options, const target::Target& target) {
  std::fprintf(stderr, "costs are modelled for %s, not measured\n", target.cpu.c_str());
  std::vector<std::unique_ptr<record::Dataset>> parts;
  std::set<std::string> known;
  if (std::filesystem::exists(options.out)) {
    HONE_ASSIGN_OR_RETURN(parts.emplace_back(), record::Dataset::Open(options.out));
    HONE_RETURN_IF_ERROR(CheckKind(*parts[0], options.out, /*modelled=*/true));
    for (const record::DatasetTask& task : parts[0]->tasks()) known.insert(task.workload);
  }
  HONE_RETURN_IF_ERROR(MakeDirectories(options.work_folder));
  const std::unique_ptr<job::TaskEnvironment> environment = job::MakeCompilerEnvironment(1);
  size_t number = 0, failed = 0;
  absl::Status failure;
  for (const SampleTask& task : options.tasks) {
    ++number;
    if (known.contains(task.workload)) continue;
    const std::string path =
        absl::StrCat(options.work_folder, "/",
                     DigestOf(task.workload + target.KindText()).ToHex().substr(0, 16), ".h5");
    if (!std::filesystem::exists(path)) {
      std::fprintf(stderr, "task %zu of %zu: %s\n", number, options.tasks.size(),
                   task.name.c_str());
      const absl::Status status = ModelTask(task, options, target, *environment, path);
      if (absl::IsInvalidArgument(status)) {  // no design space, as on a GPU
        std::fprintf(stderr, "skipped: %s\n", std::string(status.message()).c_str());
        continue;
      }
      if (!status.ok()) {
        std::fprintf(stderr, "failed: %s\n", std::string(status.message()).c_str());
        failure = status;
        ++failed;
        continue;
      }
    }
    HONE_ASSIGN_OR_RETURN(parts.emplace_back(), record::Dataset::Open(path));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::DatasetWriter> writer,
                        record::DatasetWriter::Create(options.out));
  for (const std::unique_ptr<record::Dataset>& part : parts)
    HONE_RETURN_IF_ERROR(CopyRecords(*part, *writer));
  HONE_RETURN_IF_ERROR(writer->Finish());
  if (failed == 0) return absl::OkStatus();
  return absl::Status(failure.code(),
                      absl::StrCat(failed, " of ", options.tasks.size(),
                                   " tasks failed and are not in the dataset; the same command "
                                   "models them: ",
                                   failure.message()));
}

}  // namespace hone::lab
