#include "client/cli/records/lock.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/network_argument.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/running_job.h"
#include "common/base/counted.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "common/record/proto_convert.h"
#include "common/target/kernel_abi.h"

namespace hone::cli {
namespace {

constexpr char kLockKey[] = "hone_lock";
constexpr int kLockVersion = 1;
// The number of drifted kernels that a message describes.
constexpr size_t kDescribedDrifts = 3;

Json LockedJson(const LockedKernel& kernel) {
  return {{"workload_digest", kernel.workload},
          {"signature", kernel.signature},
          {"target", kernel.target},
          {"tolerance", kernel.tolerance},
          {"trace_digest", kernel.trace},
          {"record", kernel.record},
          {"measured_unix_ms", kernel.measured_unix_ms},
          {"latency_ns", kernel.latency_ns},
          {"kernel_abi", kernel.kernel_abi}};
}

// Throws Json::exception if a member is missing or has another type.
LockedKernel LockedFromJson(const Json& json) {
  LockedKernel kernel;
  json.at("workload_digest").get_to(kernel.workload);
  json.at("signature").get_to(kernel.signature);
  json.at("target").get_to(kernel.target);
  json.at("tolerance").get_to(kernel.tolerance);
  json.at("trace_digest").get_to(kernel.trace);
  json.at("record").get_to(kernel.record);
  json.at("measured_unix_ms").get_to(kernel.measured_unix_ms);
  json.at("latency_ns").get_to(kernel.latency_ns);
  json.at("kernel_abi").get_to(kernel.kernel_abi);
  return kernel;
}

bool AreOfOneTask(const LockedKernel& a, const LockedKernel& b) {
  return a.workload == b.workload && a.target == b.target && a.tolerance == b.tolerance;
}

// A record of the store, with its schedule.
struct StoredKernel {
  std::optional<record::Record> record;
  std::string trace;
};

// Finds a locked record that is no longer the best. Its kernel may have been removed.
absl::StatusOr<StoredKernel> FindStored(Session& session, const LockedKernel& locked) {
  v1::ListRecordsRequest filter;
  filter.set_workload_digest(locked.workload);
  filter.set_target(locked.target);
  filter.set_since_unix_ms(locked.measured_unix_ms);
  filter.set_until_unix_ms(locked.measured_unix_ms + 1);
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> records,
                        session.connection().ListRecords(filter, /*limit=*/0));
  StoredKernel stored;
  for (const record::Record& record : records) {
    if (record.id == locked.record) stored.record = record;
  }
  if (!stored.record.has_value() || stored.record->result.artifact_digest.empty()) return stored;
  v1::Best best;
  *best.mutable_record() = record::ToProto(*stored.record);
  const absl::StatusOr<record::Artifact> artifact = ArtifactOf(session, best);
  if (absl::IsFailedPrecondition(artifact.status())) return stored;  // it was removed
  HONE_RETURN_IF_ERROR(artifact.status());
  stored.trace = artifact->trace;
  return stored;
}

// Describes an earlier best like the present one of its workload.
v1::Best Earlier(const StoredKernel& stored, v1::Best best) {
  const record::Record& record = *stored.record;
  const double latency_ns = record::SteadyLatencyNs(record.result);
  best.set_gflops(best.gflops() * best.latency_ns() / latency_ns);
  best.set_latency_ns(latency_ns);
  best.set_trace(stored.trace);
  best.set_confirmed(record::IsConfirmed(record));
  best.set_disturbed(record::IsOnlyDisturbed(record.result));
  best.set_processes(record::ProcessesOf(record.result));
  best.clear_pinned_unix_ms();
  best.clear_pinned_by();
  *best.mutable_record() = record::ToProto(record);
  return best;
}

// The locked kernel of one workload. FailedPrecondition: drift; the message says why. `present`:
// the best of the workload; nullopt: none.
absl::StatusOr<v1::Best> LockedBest(Session& session, const LockedKernel& locked,
                                    const WorkloadArgument& argument,
                                    const std::optional<v1::Best>& present) {
  const bool is_present = present.has_value() && present->record().id() == locked.record;
  StoredKernel stored;
  if (is_present) {
    stored = {client::RecordOf(*present), present->trace()};
  } else {
    HONE_ASSIGN_OR_RETURN(stored, FindStored(session, locked));
  }
  const std::string drift =
      DriftOf(locked, stored.record, stored.trace.empty() ? "" : DigestOf(stored.trace).ToHex());
  if (!drift.empty()) return absl::FailedPreconditionError(drift);
  if (is_present) return *present;
  v1::Best other = present.value_or(v1::Best());
  other.set_workload(argument.text);
  return Earlier(stored, std::move(other));
}

struct LockOptions {
  std::string file;
  BestWords words;
  std::vector<std::string> shapes;
};

// Looks up the bests of an operator, of several ones, or of a network. Errors as for CheckAllKnown
// and CheckNetworkKnown.
absl::StatusOr<std::vector<LockedKernel>> ChosenKernels(const Globals& globals,
                                                        const LockOptions& options,
                                                        std::vector<WorkloadArgument>& tasks) {
  std::optional<NetworkArgument> network;
  if (NamesNetwork(options.words.words)) {
    HONE_ASSIGN_OR_RETURN(network, ReadNetwork(globals, {options.words.words[0], options.shapes}));
    tasks = network->tasks;
  } else if (options.shapes.empty()) {
    HONE_ASSIGN_OR_RETURN(tasks, ReadWorkloads(options.words.words));
  } else {
    return absl::InvalidArgumentError("--shape is for networks (FILE.onnx)");
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::string target, session->TargetKey());
  const double tolerance = options.words.tolerance;
  std::vector<LockedKernel> kernels;
  const auto add = [&](const WorkloadArgument& argument, const std::optional<v1::Best>& best) {
    if (best.has_value()) kernels.push_back(LockedKernelOf(argument, *best));
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> unknown,
                        VisitBests(*session, tasks, tolerance, /*nearest=*/false, add));
  if (network.has_value()) {
    HONE_RETURN_IF_ERROR(CheckNetworkKnown(*network, unknown.size(), target, tolerance,
                                           FindRunningJob(*session, unknown, target, tolerance)));
  } else {
    const std::string words = absl::StrJoin(
        tasks, " ",
        [](std::string* out, const WorkloadArgument& each) { absl::StrAppend(out, each.words); });
    HONE_RETURN_IF_ERROR(
        CheckAllKnown(*session, unknown, tasks.size(), /*file=*/"", target, tolerance, words));
  }
  return kernels;
}

absl::Status WriteLock(const Globals& globals, const LockOptions& options) {
  absl::StatusOr<KernelLock> lock = ReadLock(options.file);
  if (absl::IsNotFound(lock.status())) lock = KernelLock{options.file, {}};
  HONE_RETURN_IF_ERROR(lock.status());
  std::vector<WorkloadArgument> tasks;
  HONE_ASSIGN_OR_RETURN(const std::vector<LockedKernel> chosen,
                        ChosenKernels(globals, options, tasks));
  Json list = Json::array();
  Table table({Left("workload"), Right("latency"), Right("record"), Left("locked before")});
  for (size_t i = 0; i < chosen.size(); ++i) {
    const LockedKernel& kernel = chosen[i];
    const std::optional<LockedKernel> before = AddKernel(kernel, lock->kernels);
    const bool same = before.has_value() && before->record == kernel.record;
    table.AddRow({tasks[i].title, FormatLatency(kernel.latency_ns), absl::StrCat(kernel.record),
                  !before.has_value() ? "no"
                  : same              ? "the same"
                                      : absl::StrCat("record ", before->record, ", ",
                                                     FormatLatency(before->latency_ns))});
    Json json = LockedJson(kernel);
    json["replaced_record"] = before.has_value() && !same ? Json(before->record) : Json(nullptr);
    list.push_back(std::move(json));
  }
  HONE_RETURN_IF_ERROR(
      WithExitCode(WriteFileAtomically(options.file, LockToText(lock->kernels)), kExitFailed));
  if (globals.json) return PrintJson({{"path", options.file}, {"kernels", std::move(list)}});
  table.Print();
  PrintWrapped(absl::StrCat("\nwrote ", options.file, ": ",
                            Counted(static_cast<int64_t>(lock->kernels.size()), "kernel")));
  return absl::OkStatus();
}

}  // namespace

void AddLocked(Command& command, Globals& globals, std::initializer_list<OptionRule> rules) {
  std::vector<OptionRule> all = {NotEmpty()};
  all.insert(all.end(), rules.begin(), rules.end());
  const OptionRule every = [all](CLI::Option& option) {
    for (const OptionRule& rule : all) rule(option);
  };
  command.Add("--locked", globals.locked,
              "FILE that hone lock wrote: use exactly its kernels, even if faster ones are known "
              "now. The exit code is 6 if one is missing or has changed",
              {every});
}

std::string LockToText(const std::vector<LockedKernel>& kernels) {
  Json list = Json::array();
  for (const LockedKernel& kernel : kernels) list.push_back(LockedJson(kernel));
  const Json file = {{kLockKey, kLockVersion}, {"kernels", std::move(list)}};
  return absl::StrCat(file.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::StatusOr<std::vector<LockedKernel>> ParseLock(absl::string_view text) {
  int version = 0;
  std::vector<Json> list;
  try {
    const Json file = Json::parse(text.begin(), text.end());
    file.at(kLockKey).get_to(version);
    file.at("kernels").get_to(list);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("this is not a lock file; hone lock writes one");
  }
  if (version != kLockVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the lock file has version ", version,
                                                   "; this program reads version ", kLockVersion));
  }
  std::vector<LockedKernel> kernels;
  for (const Json& each : list) {
    try {
      kernels.push_back(LockedFromJson(each));
    } catch (const Json::exception&) {
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", kernels.size() + 1, ": a member is missing or malformed"));
    }
  }
  return kernels;
}

absl::StatusOr<KernelLock> ReadLock(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<std::vector<LockedKernel>> kernels = ParseLock(text);
  if (kernels.ok()) return KernelLock{path, *std::move(kernels)};
  return absl::Status(kernels.status().code(),
                      absl::StrCat(path, ": ", kernels.status().message()));
}

std::optional<LockedKernel> AddKernel(const LockedKernel& kernel,
                                      std::vector<LockedKernel>& kernels) {
  for (LockedKernel& each : kernels) {
    if (AreOfOneTask(each, kernel)) return std::exchange(each, kernel);
  }
  kernels.push_back(kernel);
  return std::nullopt;
}

LockedKernel LockedKernelOf(const WorkloadArgument& argument, const v1::Best& best) {
  return {.workload = argument.workload.StructuralDigest().ToHex(),
          .signature = ir::SignatureText(argument.workload),
          .target = best.record().target(),
          .tolerance = best.record().tolerance(),
          .trace = DigestOf(best.trace()).ToHex(),
          .record = best.record().id(),
          .measured_unix_ms = best.record().created_unix_ms(),
          .latency_ns = best.latency_ns(),
          .kernel_abi = target::kKernelAbiVersion};
}

absl::StatusOr<LockedKernel> FindLocked(absl::Span<const LockedKernel> kernels,
                                        absl::string_view workload, absl::string_view target,
                                        double tolerance) {
  std::vector<std::string> others;
  for (const LockedKernel& kernel : kernels) {
    if (kernel.workload != workload) continue;
    if (kernel.target != target || kernel.tolerance != tolerance) {
      others.push_back(absl::StrCat(
          kernel.target,
          kernel.tolerance == 0 ? "" : absl::StrCat(" with tolerance ", kernel.tolerance)));
      continue;
    }
    if (kernel.kernel_abi == target::kKernelAbiVersion) return kernel;
    return absl::InvalidArgumentError(absl::StrCat(
        "it is locked for version ", kernel.kernel_abi,
        " of the kernel ABI, and this program has version ", target::kKernelAbiVersion));
  }
  if (others.empty()) return absl::InvalidArgumentError("it is not in the file");
  return absl::InvalidArgumentError(
      absl::StrCat("it is locked for ", absl::StrJoin(others, ", "), ", not for ", target,
                   tolerance == 0 ? "" : absl::StrCat(" with tolerance ", tolerance)));
}

std::string DriftOf(const LockedKernel& locked, const std::optional<record::Record>& record,
                    absl::string_view trace) {
  const std::string name = absl::StrCat("record ", locked.record);
  if (!record.has_value()) return absl::StrCat(name, " is not in the store");
  if (record->workload_digest != locked.workload || record->target != locked.target ||
      record->tolerance != locked.tolerance) {
    return absl::StrCat(name, " is now of another workload or target");
  }
  if (record->quarantined) {
    return absl::StrCat(name, " is quarantined: ", record->quarantine_reason);
  }
  if (trace.empty()) return absl::StrCat("the kernel of ", name, " is no longer in the store");
  if (trace != locked.trace) return absl::StrCat(name, " is now of another schedule");
  return "";
}

absl::StatusOr<std::vector<v1::Best>> LockedBests(Session& session, const KernelLock& lock,
                                                  absl::Span<const WorkloadArgument> list,
                                                  const std::string& target, double tolerance) {
  std::vector<v1::LookupBestRequest> queries;
  for (const WorkloadArgument& argument : list) {
    queries.push_back(client::BestQuery(argument.text, target, tolerance, /*nearest=*/false));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<std::optional<v1::Best>> present,
                        session.connection().LookupBests(queries));
  std::vector<v1::Best> bests;
  std::vector<std::string> drifts;
  for (size_t i = 0; i < list.size(); ++i) {
    const absl::StatusOr<LockedKernel> locked =
        FindLocked(lock.kernels, list[i].workload.StructuralDigest().ToHex(), target, tolerance);
    absl::StatusOr<v1::Best> best = locked.ok()
                                        ? LockedBest(session, *locked, list[i], present[i])
                                        : absl::FailedPreconditionError(locked.status().message());
    if (best.ok()) {
      bests.push_back(*std::move(best));
    } else if (absl::IsFailedPrecondition(best.status())) {
      drifts.push_back(absl::StrCat(list[i].title, ": ", best.status().message()));
    } else {
      return best.status();
    }
  }
  if (drifts.empty()) return bests;
  const size_t described = std::min(drifts.size(), kDescribedDrifts);
  return DriftError(absl::StrCat(
      drifts.size(), " of ", Counted(static_cast<int64_t>(list.size()), "kernel"), " of ",
      lock.path, drifts.size() == 1 ? " has" : " have",
      " drifted: ", absl::StrJoin(absl::MakeConstSpan(drifts).first(described), "; "),
      described < drifts.size() ? absl::StrCat("; and ", drifts.size() - described, " more") : "",
      "; \"", SuggestedCommandForTarget(absl::StrCat("lock ", ShellWord(lock.path), " WORDS")),
      "\", with the same words, locks the present bests"));
}

void AddLock(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "lock", "Write to a file which kernels are the best now, so that others use the same ones");
  auto options = std::make_shared<LockOptions>();
  command.Add("file", options->file,
              "Lock file to write; other kernels in it are kept, so that one file may hold several "
              "networks, operators and targets",
              {Required(), NotEmpty()});
  AddBestWords(command, options->words, /*required=*/true, Names::kOperatorOrNetwork);
  AddShapes(command, options->shapes);
  Complete(command, globals,
           "For each kernel, the file has the digests of the workload and of the trace, the "
           "target, the record and its latency. hone best, export, run and check with --locked "
           "FILE use exactly these kernels, even if faster ones were found since. Their exit code "
           "is 6 if the file has no kernel for a workload and target, if the server no longer has "
           "the record, if its trace is another one, or if the kernel ABI has changed. Records are "
           "numbered by each server, so the file belongs to the server that was asked.\n\n"
           "The exit code is 3, and nothing is written, if no schedule is known for a workload.\n\n"
           "Examples:\n"
           "  hone lock hone.lock matmul m=512 n=512 k=512 softmax m=512 n=512\n"
           "  hone lock hone.lock resnet50.onnx\n"
           "  hone export resnet50.onnx -o resnet50/ --locked hone.lock",
           [&globals, options] { return WriteLock(globals, *options); });
}

}  // namespace hone::cli
