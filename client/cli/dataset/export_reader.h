#ifndef HONE_CLIENT_CLI_DATASET_EXPORT_READER_H_
#define HONE_CLIENT_CLI_DATASET_EXPORT_READER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "client/cli/dataset/dataset_builder.h"
#include "client/cli/dataset/text_lines.h"
#include "nlohmann/json_fwd.hpp"

namespace hone::cli {

// The longest line of an export (server/store/exchange).
inline constexpr size_t kMostExportLineBytes = size_t{32} << 20;

// What an export does not say of its records. Members may be null.
struct ExportFacts {
  std::function<std::string(const std::string& job)> source;       // "": unknown
  std::function<std::string(const std::string& digest)> network;   // of a workload
  std::function<std::string(const std::string& key)> target_text;  // "": unknown
};

// Reads the lines of `hone records export` into a dataset: screening measurements that are not
// quarantined, without default schedules. The source of a record is the store it comes from, unless
// the facts know more. Keeps the texts of workloads and spaces, but no records.
class ExportReader {
 public:
  // REQUIRES: the builder outlives this object.
  ExportReader(DatasetBuilder* builder, ExportFacts facts)
      : builder_(builder), facts_(std::move(facts)) {}

  // InvalidArgument: the line is malformed; the message names it. Errors also as for
  // DatasetBuilder::Add.
  absl::Status Read(const TextLine& line);
  // InvalidArgument: the export is truncated.
  absl::Status Finish() const;

  int64_t unsuitable() const { return unsuitable_; }  // confirmations, quarantined, defaults

 private:
  absl::Status ReadRecord(const nlohmann::json& record);
  std::string SourceOf(const std::string& job) const;

  DatasetBuilder* const builder_;
  const ExportFacts facts_;
  std::string store_;
  std::map<std::string, std::string> texts_;  // by digest
  bool has_ended_ = false;
  int64_t unsuitable_ = 0;
};

// Whether a line begins an export.
bool IsExportHeader(const nlohmann::json& line);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_DATASET_EXPORT_READER_H_
