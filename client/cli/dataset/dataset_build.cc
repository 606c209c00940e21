#include "client/cli/dataset/dataset_build.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/dataset/export_reader.h"
#include "client/cli/dataset/foreign_log.h"
#include "client/cli/dataset/text_lines.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace hone::cli {
namespace {

constexpr absl::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

absl::Status InFile(const std::string& path, const absl::Status& status) {
  if (!absl::IsInvalidArgument(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", status.message()));
}

// Reads another system's log. Records that are not replayed have the form of the log as their
// space.
class ForeignReader {
 public:
  ForeignReader(std::string path, DatasetBuilder* builder, BuildReport* report)
      : path_(std::move(path)), builder_(builder), report_(report) {}

  absl::Status Read(const TextLine& line) {
    if (line.text.empty() && !line.is_too_long) return absl::OkStatus();
    if (absl::StartsWith(line.text, "#")) return absl::OkStatus();
    if (line.is_too_long || line.text.size() > kMostForeignLineBytes) {
      return Unread(line, absl::StrCat("longer than ", kMostForeignLineBytes >> 20, " MiB"));
    }
    const absl::StatusOr<nlohmann::json> json = ParseForeignLine(line.text);
    if (!json.ok()) return Unread(line, json.status().message());
    for (const ForeignFormat& format : ForeignFormats()) {
      if (!format.recognizes(*json)) continue;
      if (format.has_workload_file && !has_workloads_) HONE_RETURN_IF_ERROR(ReadWorkloads());
      ForeignCount& count = report_->foreign[format.name];
      const absl::StatusOr<ForeignRecord> record = format.parse(*json, workloads_);
      if (!record.ok()) {
        ++count.skipped;
        AddProblem(line, record.status().message());
        return absl::OkStatus();
      }
      ++count.records;
      if (!record->workload.empty()) ++count.known;
      count.replay.Add(!record->trace.empty(), record->reason);
      return Add(format, *record);
    }
    return Unread(line, "no record of a known format");
  }

 private:
  absl::Status Add(const ForeignFormat& format, const ForeignRecord& record) {
    return builder_->Add(
        {.target = {record.target, absl::StrCat("imported from ", format.name)},
         .task = {.workload = record.workload.empty()
                                  ? absl::StrCat("foreign ", format.name, " ", record.key)
                                  : record.workload},
         .space = record.trace.empty() ? ForeignSpace(format.name, record) : record.trace,
         .source = format.name,
         .record = {.outcome = record.outcome,
                    .latency_ns = record.latency_ns,
                    .created_unix_ms = record.created_unix_ms}});
  }

  // Reads the names of the workloads beside the log, if there are any.
  absl::Status ReadWorkloads() {
    has_workloads_ = true;
    const std::string file =
        (std::filesystem::path(path_).parent_path() / "database_workload.json").string();
    if (!std::filesystem::exists(file)) return absl::OkStatus();
    return ReadTextLines(file, kMostExportLineBytes, [&](const TextLine& line) {
      // ["HASH", …]; the module may be long.
      const std::vector<absl::string_view> parts =
          absl::StrSplit(line.text, absl::MaxSplits('"', 2));
      workloads_.push_back(parts.size() == 3 ? std::string(parts[1])
                                             : absl::StrCat("workload ", workloads_.size()));
      return absl::OkStatus();
    });
  }

  absl::Status Unread(const TextLine& line, absl::string_view why) {
    ++report_->unread_lines;
    AddProblem(line, why);
    return absl::OkStatus();
  }
  void AddProblem(const TextLine& line, absl::string_view why) {
    if (report_->problems.size() < kMostProblems)
      report_->problems.push_back(absl::StrCat(path_, ":", line.number, ": ", why));
  }

  const std::string path_;
  DatasetBuilder* const builder_;
  BuildReport* const report_;
  bool has_workloads_ = false;
  std::vector<std::string> workloads_;
};

absl::Status AddText(const std::string& path, DatasetBuilder& builder, BuildReport& report) {
  std::unique_ptr<ExportReader> reader;
  ForeignReader foreign(path, &builder, &report);
  bool is_first = true;
  const absl::Status status =
      ReadTextLines(path, kMostExportLineBytes, [&](const TextLine& line) -> absl::Status {
        if (std::exchange(is_first, false) && !line.is_too_long &&
            IsExportHeader(nlohmann::json::parse(line.text, nullptr, /*allow_exceptions=*/false))) {
          reader = std::make_unique<ExportReader>(&builder, ExportFacts{});
        }
        return reader != nullptr ? reader->Read(line) : foreign.Read(line);
      });
  HONE_RETURN_IF_ERROR(InFile(path, status));
  if (is_first) return InFile(path, absl::InvalidArgumentError("the file is empty"));
  if (reader == nullptr) return absl::OkStatus();
  report.unsuitable += reader->unsuitable();
  return InFile(path, reader->Finish());
}

}  // namespace

absl::Status AddInput(const std::string& path, DatasetBuilder& builder, BuildReport& report) {
  std::string begin(kHdf5Signature.size(), '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<int64_t>(begin.size()));
  if (begin != kHdf5Signature) return AddText(path, builder, report);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<record::Dataset> dataset,
                        record::Dataset::Open(path, record::Dataset::Spaces::kInFile));
  return builder.AddDataset(*dataset);
}

}  // namespace hone::cli
