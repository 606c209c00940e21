#include "server/service/model/model_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "hone/v1/model_file.pb.h"
#include "nlohmann/json.hpp"
#include "server/service/job_convert.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/draft_weights.h"
#include "server/tuner/cost_model/model_file.h"

namespace hone::service {
namespace {

constexpr absl::string_view kFileMagic = "HONELRND";
constexpr uint32_t kFileLayout = 1;
constexpr size_t kFileHead = kFileMagic.size() + sizeof(uint32_t);
constexpr size_t kFileDigest = 2 * sizeof(uint64_t);

constexpr size_t kMostMetrics = 64 << 10;     // bytes
constexpr int kMostMetricDepth = 8;           // of objects in objects
constexpr size_t kMostTargetText = 64 << 10;  // bytes, as for workers
constexpr int64_t kMostCounted = int64_t{1} << 40;
constexpr uint32_t kMostColumns = 1 << 16;
constexpr absl::Duration kMostAhead = absl::Hours(24);  // of the clock of another server

absl::Status BadFile(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a usable file of a model: ", why,
                                                 "; hone models export writes such files"));
}

absl::Status CheckWord(absl::string_view what, absl::string_view text, size_t most) {
  if (text.size() > most) {
    return BadFile(
        absl::StrCat(what, " has ", text.size(), " bytes; at most ", most, " are allowed"));
  }
  if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return BadFile(absl::StrCat(what, " has a control character"));
  return absl::OkStatus();
}

bool IsPlain(const nlohmann::json& json, int depth) {
  if (json.is_number()) return std::isfinite(json.get<double>());
  if (json.is_object() || json.is_array()) {
    return depth > 0 && std::ranges::all_of(json, [&](const nlohmann::json& each) {
             return IsPlain(each, depth - 1);
           });
  }
  return true;
}

absl::Status CheckMetrics(const std::string& text) {
  if (text.size() > kMostMetrics)
    return BadFile(absl::StrCat("the metrics have ", text.size(), " bytes; at most ", kMostMetrics,
                                " are allowed"));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return BadFile("the metrics are not a JSON object");
  if (!IsPlain(json, kMostMetricDepth))
    return BadFile("the metrics are nested too deeply, or one is not a finite number");
  return absl::OkStatus();
}

absl::Status CheckCounts(const store::ModelRow& row, absl::Time now) {
  if (row.records < 1 || row.records > kMostCounted || row.workloads < 1 ||
      row.workloads > row.records) {
    return BadFile(absl::StrCat("a model cannot be trained on ", row.records, " records of ",
                                row.workloads, " workloads"));
  }
  if (row.created_unix_ms <= 0 || row.created_unix_ms > absl::ToUnixMillis(now + kMostAhead)) {
    return BadFile(absl::StrCat("it was trained at an impossible time, ", row.created_unix_ms,
                                " ms after 1970"));
  }
  return absl::OkStatus();
}

absl::Status CheckTargetOf(const store::ModelRow& row) {
  if (row.key.target.empty()) return BadFile("it names no target");
  HONE_RETURN_IF_ERROR(CheckWord("the target", row.key.target, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(
      CheckWord("the description of the target", row.target_text, kMostTargetText));
  if (row.target_text.empty()) return absl::OkStatus();
  const absl::StatusOr<target::Target> target = target::Target::FromText(row.target_text);
  if (!target.ok()) return BadFile(absl::StrCat("its target: ", target.status().message()));
  if (target->Key() == row.key.target) return absl::OkStatus();
  return BadFile(
      absl::StrCat("its target is described as ", target->Key(), ", but named ", row.key.target));
}

// Asks the model for a few rows, because numbers that were changed by hand may be read but spoil
// every search. A draft refuses rows of the other kind of device than its own; those of a GPU have
// an estimate of its cycles.
absl::Status CheckAnswers(const cost_model::CostModel& model, uint32_t columns, bool of_gpu) {
  if (columns == 0) return absl::OkStatus();
  if (columns > kMostColumns) return BadFile(absl::StrCat("it reads ", columns, " columns"));
  cost_model::FeatureMatrix rows{.columns = static_cast<int>(columns)};
  for (const float value : {0.0f, 1.0f, 100.0f}) {
    std::vector<float> row(columns, value);
    if (columns >= cost_model::kDraftColumns)
      row[columns - cost_model::kDraftColumns + cost_model::kGpuEstimate] = of_gpu ? 1 + value : 0;
    rows.Append(row, 1);
  }
  const absl::StatusOr<cost_model::Prediction> answers = model.Predict(rows);
  if (!answers.ok()) return BadFile(answers.status().message());
  if (std::ranges::all_of(answers->mean, [](double mean) { return std::isfinite(mean); }))
    return absl::OkStatus();
  return BadFile("the model predicts what is not a number");
}

}  // namespace

std::string EncodeModelFile(const store::ModelRow& row, const std::string& here) {
  v1::ModelFile file;
  file.set_name(row.key.name);
  file.set_feature_set(row.key.feature_set);
  file.set_target(row.key.target);
  file.set_target_text(row.target_text);
  file.set_operator_(row.key.scope);
  file.set_version(row.version);
  file.set_records(row.records);
  file.set_workloads(row.workloads);
  file.set_created_unix_ms(row.created_unix_ms);
  file.set_metrics(row.metrics);
  file.set_origin(row.origin.empty() ? here : row.origin);
  file.set_model(row.bytes);
  cost_model::ByteWriter head, tail;
  head.Add(kFileLayout);
  const std::string bytes =
      absl::StrCat(kFileMagic, std::move(head).Finish(), file.SerializeAsString());
  const Digest digest = DigestOf(bytes);
  tail.Add(digest.high, digest.low);
  return absl::StrCat(bytes, std::move(tail).Finish());
}

absl::StatusOr<store::ModelRow> DecodeModelFile(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kFileMagic))
    return BadFile(absl::StrCat("it does not begin with ", kFileMagic));
  if (bytes.size() < kFileHead + kFileDigest) return BadFile("it is truncated");
  const absl::string_view signed_part = bytes.substr(0, bytes.size() - kFileDigest);
  cost_model::ByteReader head(signed_part.substr(kFileMagic.size()));
  HONE_ASSIGN_OR_RETURN(const uint32_t layout, head.Read<uint32_t>());
  if (layout != kFileLayout) {
    return BadFile(
        absl::StrCat("it is of layout ", layout, ", but this program reads layout ", kFileLayout));
  }
  cost_model::ByteReader tail(bytes.substr(signed_part.size()));
  Digest digest;
  HONE_RETURN_IF_ERROR(tail.Read(digest.high, digest.low));
  if (DigestOf(signed_part) != digest)
    return BadFile("it is truncated or damaged: its digest does not match");
  v1::ModelFile file;
  const absl::string_view message = signed_part.substr(kFileHead);
  if (!file.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return BadFile("its message is malformed");
  store::ModelRow row{.key = {.name = file.name(),
                              .feature_set = file.feature_set(),
                              .target = file.target(),
                              .scope = file.operator_()},
                      .version = file.version(),
                      .records = file.records(),
                      .workloads = file.workloads(),
                      .created_unix_ms = file.created_unix_ms(),
                      .metrics = file.metrics(),
                      .bytes = std::move(*file.mutable_model()),
                      .target_text = file.target_text(),
                      .origin = file.origin()};
  row.size = static_cast<int64_t>(row.bytes.size());
  return row;
}

absl::Status CheckImportedModel(const store::ModelRow& row, const job::TaskEnvironment& environment,
                                absl::Time now) {
  HONE_RETURN_IF_ERROR(CheckWord("the name", row.key.name, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(CheckWord("the feature set", row.key.feature_set, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(CheckWord("the operator", row.key.scope, kMaxIdBytes));
  HONE_RETURN_IF_ERROR(CheckWord("the origin", row.origin, kMaxIdBytes));
  if (row.origin.empty()) return BadFile("it does not say which server trained it");
  HONE_RETURN_IF_ERROR(CheckTargetOf(row));
  HONE_RETURN_IF_ERROR(CheckCounts(row, now));
  HONE_RETURN_IF_ERROR(CheckMetrics(row.metrics));
  if (row.bytes.size() > store::Store::kMaxModelBytes)
    return BadFile(absl::StrCat("the model has ", row.bytes.size(), " bytes; at most ",
                                store::Store::kMaxModelBytes, " are allowed"));
  const absl::StatusOr<cost_model::ModelHeader> header = cost_model::ReadModelHeader(row.bytes);
  if (!header.ok()) return BadFile(header.status().message());
  if (header->name != row.key.name || header->feature_set != row.key.feature_set ||
      int64_t{header->version} != row.version) {
    return BadFile(absl::StrCat("it describes version ", row.version, " of model '", row.key.name,
                                "' on feature set '", row.key.feature_set, "', but holds version ",
                                header->version, " of '", header->name, "' on '",
                                header->feature_set, "'"));
  }
  const absl::StatusOr<std::unique_ptr<cost_model::CostModel>> model =
      environment.CreateModel(row.key.name, {.feature_set = row.key.feature_set});
  if (!model.ok()) return BadFile(model.status().message());
  if (const absl::Status loaded = (*model)->Load(row.bytes); !loaded.ok())
    return BadFile(loaded.message());
  const absl::StatusOr<target::Target> target = target::Target::FromText(row.target_text);
  return CheckAnswers(**model, header->columns, target.ok() && target->kind != target::Kind::kCpu);
}

}  // namespace hone::service
