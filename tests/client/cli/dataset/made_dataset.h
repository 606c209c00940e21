#ifndef HONE_TESTS_CLIENT_CLI_DATASET_MADE_DATASET_H_
#define HONE_TESTS_CLIENT_CLI_DATASET_MADE_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/record/dataset.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::cli {

// Writes a made-up dataset: `records` records of 10 tasks in 3 networks on 2 devices. Every eighth
// fails. The candidates repeat after 4 * `tasks`.
inline void MakeDataset(const std::string& path, int64_t records) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto writer, record::DatasetWriter::Create(path));
  for (int64_t i = 0; i < records; ++i) {
    const int64_t task = i % 10;
    const bool ok = i % 8 != 7;
    ASSERT_THAT(writer->Append({.target = writer->Target(
                                    {absl::StrCat("target ", i % 2), absl::StrCat("cpu ", i % 2)}),
                                .task = writer->Task({absl::StrCat("workload op", task, "\n"),
                                                      absl::StrCat("net-", task % 3), 0}),
                                .space = writer->Space(absl::StrCat("space ", task)),
                                .source = writer->Source(i % 3 == 0 ? "random" : "portfolio"),
                                .decisions = {i % 40},
                                .outcome = ok ? record::Outcome::kOk : record::Outcome::kCrash,
                                .latency_ns = ok ? 1000.0 + static_cast<double>(i % 40) : 0,
                                .created_unix_ms = i}),
                IsOk());
  }
  ASSERT_THAT(writer->Finish(), IsOk());
}

}  // namespace hone::cli

#endif  // HONE_TESTS_CLIENT_CLI_DATASET_MADE_DATASET_H_
