// MetaSchedule, database_tuning_record.json: [index of the workload, [trace, seconds, target,
// arguments]]. A trace is [instructions, decisions], an instruction [name, inputs, attributes,
// outputs], a decision [index of the instruction, value]. database_workload.json has a line
// [structural hash, module] for each workload.

#include <set>

#include "absl/strings/str_cat.h"
#include "client/cli/dataset/foreign_log.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

using nlohmann::json;

const std::set<std::string>& Instructions() {
  static const auto* const kNames = new std::set<std::string>{"AddUnitLoop",
                                                              "Annotate",
                                                              "AnnotateBufferAccess",
                                                              "Bind",
                                                              "Blockize",
                                                              "CacheIndex",
                                                              "CacheInplace",
                                                              "CacheRead",
                                                              "CacheWrite",
                                                              "ComputeAt",
                                                              "ComputeInline",
                                                              "DecomposePadding",
                                                              "DecomposeReduction",
                                                              "EnterPostproc",
                                                              "Fuse",
                                                              "FuseReductionEpilogue",
                                                              "GetBlock",
                                                              "GetChildBlocks",
                                                              "GetConsumers",
                                                              "GetLoops",
                                                              "GetOutputBlocks",
                                                              "GetProducers",
                                                              "GetSBlock",
                                                              "LoopPartition",
                                                              "Merge",
                                                              "PadEinsum",
                                                              "Parallel",
                                                              "RFactor",
                                                              "ReIndex",
                                                              "ReadAt",
                                                              "ReindexCacheRead",
                                                              "ReindexCacheWrite",
                                                              "Reorder",
                                                              "ReorderBlockIterVar",
                                                              "ReverseComputeAt",
                                                              "ReverseComputeInline",
                                                              "RollingBuffer",
                                                              "SampleCategorical",
                                                              "SampleComputeLocation",
                                                              "SamplePartitionedTile",
                                                              "SamplePerfectTile",
                                                              "SetAxisSeparator",
                                                              "SetScope",
                                                              "Split",
                                                              "StorageAlign",
                                                              "Tensorize",
                                                              "TransformBlockLayout",
                                                              "TransformLayout",
                                                              "Unannotate",
                                                              "Unroll",
                                                              "UnsafeHideBufferAccess",
                                                              "UnsafeSetDType",
                                                              "Vectorize",
                                                              "WriteAt"};
  return *kNames;
}

bool RecognizesMetaSchedule(const json& line) {
  return line.is_array() && line.size() == 2 && line[0].is_number_integer() && line[1].is_array();
}

absl::Status CheckTrace(const json& trace) {
  if (!trace.is_array() || trace.size() != 2 || !trace[0].is_array() || !trace[1].is_array())
    return absl::InvalidArgumentError("the trace is not a list of instructions and decisions");
  for (const json& instruction : trace[0]) {
    if (!instruction.is_array() || instruction.size() != 4 || !instruction[0].is_string() ||
        !instruction[1].is_array() || !instruction[2].is_array() || !instruction[3].is_array()) {
      return absl::InvalidArgumentError("an instruction is malformed");
    }
    const std::string& name = instruction[0].get_ref<const std::string&>();
    if (!Instructions().contains(name))
      return absl::InvalidArgumentError(absl::StrCat("unknown instruction ", name.substr(0, 40)));
  }
  for (const json& decision : trace[1]) {
    if (!decision.is_array() || decision.size() != 2 || !decision[0].is_number_unsigned() ||
        decision[0].get<uint64_t>() >= trace[0].size()) {
      return absl::InvalidArgumentError("a decision belongs to no instruction");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ForeignRecord> ParseMetaSchedule(const json& line,
                                                absl::Span<const std::string> workloads) {
  const json& body = line[1];
  if (body.size() != 4) return absl::InvalidArgumentError("the record does not have four parts");
  HONE_RETURN_IF_ERROR(CheckTrace(body[0]));
  const json &seconds = body[1], &target = body[2];
  if (!target.is_string() && !target.is_object())
    return absl::InvalidArgumentError("the record has no target");
  const int64_t index = line[0].get<int64_t>();
  if (index < 0 || (!workloads.empty() && static_cast<size_t>(index) >= workloads.size()))
    return absl::InvalidArgumentError("the workload is not in database_workload.json");
  ForeignRecord record{
      .target = target.is_string() ? target.get<std::string>() : target.dump(),
      .key = absl::StrCat(workloads.empty() ? absl::StrCat("workload ", index) : workloads[index],
                          " ", body[3].dump()),
      .steps = body[0],
      .reason = std::string(kUnknownWorkload)};
  // A candidate that failed has no times, or the mark of a failure.
  HONE_RETURN_IF_ERROR(SetCost(seconds.is_null() ? json::array() : seconds, 0, record));
  return record;
}

}  // namespace

const ForeignFormat kMetaScheduleFormat = {"metaschedule", true, RecognizesMetaSchedule,
                                           ParseMetaSchedule};

}  // namespace hone::cli
