#include "client/cli/dataset/server_records.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/dataset/export_reader.h"
#include "client/cli/dataset/text_lines.h"
#include "common/base/status_macros.h"
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

}  // namespace

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

}  // namespace hone::cli
