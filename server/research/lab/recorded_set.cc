#include "server/research/lab/recorded_set.h"

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/byte_io.h"

namespace hone::lab {
namespace {

using cost_model::ByteReader;
using cost_model::ByteWriter;

constexpr absl::string_view kTitle = "hone recorded set ";
constexpr int kVersion = 1;
constexpr uint64_t kMaxBytes = 64 << 20;  // limit of the content, far above the size of any set
constexpr int kLevel = 19;

absl::Status Bad(absl::string_view what) { return absl::InvalidArgumentError(what); }

std::string Content(const RecordedSet& set) {
  const auto size = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
  ByteWriter writer;
  writer.Add(set.name, set.machine, set.target, set.recorded_unix_ms, size(set.spaces));
  for (const std::string& space : set.spaces) writer.Add(space);
  writer.Add(size(set.measurements));
  for (const Measurement& each : set.measurements) {
    writer.Add(static_cast<uint32_t>(each.outcome), each.latency_ns, each.dispersion, each.build_ms,
               each.run_ms, each.rounds);
  }
  writer.Add(size(set.candidates));
  for (const RecordedCandidate& each : set.candidates) {
    writer.Add(each.space, each.measurement, size(each.decisions));
    for (const int64_t decision : each.decisions) writer.Add(decision);
  }
  return std::move(writer).Finish();
}

// Reads a count of elements of at least `bytes` bytes each. Checks it against the remaining bytes,
// so a wrong count does not allocate memory.
absl::StatusOr<uint32_t> ReadCount(ByteReader& reader, size_t bytes) {
  HONE_ASSIGN_OR_RETURN(const uint32_t count, reader.Read<uint32_t>());
  if (count > reader.remaining() / bytes) {
    return Bad(absl::StrCat("truncated: ", count, " elements in ", reader.remaining(), " bytes"));
  }
  return count;
}

absl::Status ReadMeasurement(ByteReader& reader, Measurement& measurement) {
  uint32_t outcome = 0;
  HONE_RETURN_IF_ERROR(reader.Read(outcome, measurement.latency_ns, measurement.dispersion,
                                   measurement.build_ms, measurement.run_ms, measurement.rounds));
  for (const record::Outcome each : record::AllOutcomes()) {
    if (static_cast<uint32_t>(each) != outcome) continue;
    measurement.outcome = each;
    return absl::OkStatus();
  }
  return Bad(absl::StrCat("unknown outcome ", outcome));
}

absl::Status ReadCandidate(ByteReader& reader, RecordedCandidate& candidate) {
  HONE_RETURN_IF_ERROR(reader.Read(candidate.space, candidate.measurement));
  HONE_ASSIGN_OR_RETURN(const uint32_t count, ReadCount(reader, 8));
  candidate.decisions.resize(count);
  for (int64_t& decision : candidate.decisions) HONE_RETURN_IF_ERROR(reader.Read(decision));
  return absl::OkStatus();
}

absl::StatusOr<RecordedSet> ReadContent(absl::string_view content) {
  ByteReader reader(content);
  RecordedSet set;
  HONE_RETURN_IF_ERROR(reader.Read(set.name, set.machine, set.target, set.recorded_unix_ms));
  HONE_ASSIGN_OR_RETURN(const uint32_t spaces, ReadCount(reader, 8));
  set.spaces.resize(spaces);
  for (std::string& space : set.spaces) HONE_RETURN_IF_ERROR(reader.Read(space));
  HONE_ASSIGN_OR_RETURN(const uint32_t measurements, ReadCount(reader, 40));
  set.measurements.resize(measurements);
  for (Measurement& each : set.measurements) HONE_RETURN_IF_ERROR(ReadMeasurement(reader, each));
  HONE_ASSIGN_OR_RETURN(const uint32_t candidates, ReadCount(reader, 12));
  set.candidates.resize(candidates);
  for (RecordedCandidate& each : set.candidates) HONE_RETURN_IF_ERROR(ReadCandidate(reader, each));
  if (reader.remaining() != 0)
    return Bad(absl::StrCat(reader.remaining(), " extra bytes at the end"));
  HONE_RETURN_IF_ERROR(CheckRecordedSet(set));
  return set;
}

// Removes and returns the bytes up to the next line feed.
absl::StatusOr<absl::string_view> TakeLine(absl::string_view& bytes) {
  const size_t end = bytes.substr(0, 256).find('\n');
  if (end == absl::string_view::npos) return Bad("truncated in the first lines");
  const absl::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return line;
}

}  // namespace

double BestLatencyNs(const RecordedSet& set) {
  double best = INFINITY;
  for (const Measurement& measurement : set.measurements) {
    if (measurement.outcome == record::Outcome::kOk) best = std::min(best, measurement.latency_ns);
  }
  return best;
}

std::vector<const RecordedCandidate*> FirstCandidates(const RecordedSet& set) {
  std::vector<const RecordedCandidate*> first;
  std::vector<bool> taken(set.measurements.size(), false);
  for (const RecordedCandidate& candidate : set.candidates) {
    if (taken[candidate.measurement]) continue;
    taken[candidate.measurement] = true;
    first.push_back(&candidate);
  }
  return first;
}

RecordedSet WithoutLayoutChanges(RecordedSet set) {
  std::vector<std::string> kept;
  std::vector<int> number;  // of each space among the kept ones; -1: removed
  for (std::string& space : set.spaces) {
    const bool stays = !absl::StrContains(space, "transform_layout");
    number.push_back(stays ? static_cast<int>(kept.size()) : -1);
    if (stays) kept.push_back(space);
  }
  if (kept.empty()) return set;
  set.spaces = std::move(kept);
  std::erase_if(set.candidates,
                [&](const RecordedCandidate& candidate) { return number[candidate.space] < 0; });
  for (RecordedCandidate& candidate : set.candidates) candidate.space = number[candidate.space];
  return set;
}

absl::Status CheckRecordedSet(const RecordedSet& set) {
  if (set.spaces.empty()) return Bad("the set has no design space");
  bool any = false;
  for (size_t i = 0; i < set.measurements.size(); ++i) {
    const Measurement& measurement = set.measurements[i];
    for (const double value : {measurement.latency_ns, measurement.dispersion, measurement.build_ms,
                               measurement.run_ms}) {
      if (!std::isfinite(value) || value < 0) {
        return Bad(absl::StrCat("measurement ", i, " has the invalid number ", value));
      }
    }
    const bool ok = measurement.outcome == record::Outcome::kOk;
    if (ok != (measurement.latency_ns > 0)) {
      return Bad(absl::StrCat("measurement ", i, ": ", record::OutcomeName(measurement.outcome),
                              " with a latency of ", measurement.latency_ns));
    }
    any = any || ok;
  }
  if (!any) return Bad("no candidate of the set ran");
  std::set<std::pair<int, std::vector<int64_t>>> seen;
  for (const RecordedCandidate& candidate : set.candidates) {
    if (candidate.space < 0 || candidate.space >= static_cast<int>(set.spaces.size()) ||
        candidate.measurement < 0 ||
        candidate.measurement >= static_cast<int>(set.measurements.size())) {
      return Bad(absl::StrCat("a candidate names design space ", candidate.space,
                              " and measurement ", candidate.measurement, " of ", set.spaces.size(),
                              " and ", set.measurements.size()));
    }
    if (!seen.emplace(candidate.space, candidate.decisions).second) {
      return Bad("a decision vector is recorded twice");
    }
  }
  return absl::OkStatus();
}

std::string EncodeRecordedSet(const RecordedSet& set) {
  const std::string content = Content(set);
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  packed.resize(
      ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), kLevel));
  ByteWriter size;
  size.Add<uint64_t>(content.size());
  return absl::StrCat(kTitle, kVersion, "\n", DigestOf(content).ToHex(), "\n",
                      std::move(size).Finish(), packed);
}

absl::StatusOr<RecordedSet> DecodeRecordedSet(absl::string_view bytes) {
  HONE_ASSIGN_OR_RETURN(absl::string_view title, TakeLine(bytes));
  int version = 0;
  if (!absl::ConsumePrefix(&title, kTitle) || !absl::SimpleAtoi(title, &version)) {
    return Bad("not a recorded set: the first line is not 'hone recorded set VERSION'");
  }
  if (version != kVersion) {
    return Bad(absl::StrCat("a recorded set of version ", version, "; this program reads version ",
                            kVersion, ": use a newer hone-lab, or record it again"));
  }
  HONE_ASSIGN_OR_RETURN(const absl::string_view hex, TakeLine(bytes));
  HONE_ASSIGN_OR_RETURN(const Digest digest, Digest::FromHex(hex));
  ByteReader head(bytes.substr(0, 8));
  HONE_ASSIGN_OR_RETURN(const uint64_t size, head.Read<uint64_t>());
  bytes.remove_prefix(8);
  if (size > kMaxBytes)
    return Bad(absl::StrCat("damaged: it claims a content of ", size, " bytes"));
  std::string content(size, '\0');
  const size_t unpacked =
      ZSTD_decompress(content.data(), content.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(unpacked)) {
    return Bad(absl::StrCat("truncated or damaged: ", ZSTD_getErrorName(unpacked)));
  }
  if (unpacked != size || DigestOf(content) != digest) {
    return Bad("damaged: the content does not match its digest");
  }
  return ReadContent(content);
}

absl::StatusOr<std::vector<std::string>> RecordedSetNames(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (absl::EndsWith(file, kSetSuffix)) {
      names.push_back(file.substr(0, file.size() - kSetSuffix.size()));
    }
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("recorded sets in ", folder, ": ", error.message(),
                                            "; --recorded-dir says where they are"));
  }
  if (names.empty()) {
    return absl::NotFoundError(absl::StrCat("no recorded set (NAME", kSetSuffix, ") in ", folder));
  }
  absl::c_sort(names);
  return names;
}

absl::StatusOr<RecordedSet> LoadRecordedSet(const std::string& folder, const std::string& name) {
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> names, RecordedSetNames(folder));
  if (!absl::c_linear_search(names, name)) {
    return absl::NotFoundError(
        absl::StrCat("no recorded set '", name, "'; there are: ", absl::StrJoin(names, ", ")));
  }
  const std::string path = absl::StrCat(folder, "/", name, kSetSuffix);
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<RecordedSet> set = DecodeRecordedSet(bytes);
  if (!set.ok()) {
    return absl::Status(set.status().code(), absl::StrCat(path, ": ", set.status().message()));
  }
  return set;
}

}  // namespace hone::lab
