#include "server/service/gate.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/const_init.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"
#include "server/service/job_convert.h"

namespace hone::service {
namespace {

using rpc::Role;

// The largest requests of methods with long texts or data: the limits of their fields and some room
// for the others.
constexpr size_t kWorkloadBytes = (1 << 20) + (256 << 10);
constexpr size_t kTraceBytes = (8 << 20) + (256 << 10);
constexpr size_t kCachedBytes = 2 << 20;
constexpr size_t kLargestBytes = rpc::kMaxMessageBytes;

// Every method of every service. A test compares this table with the protocol.
constexpr Access kTable[] = {
    {"/hone.v1.TuningService/CreateJob", Role::kClient, /*audited=*/true, "request_id", false,
     kLargestBytes},
    {"/hone.v1.TuningService/GetJob", Role::kClient, false, "id", /*for_viewers=*/true},
    {"/hone.v1.TuningService/WatchJob", Role::kClient, false, "id", true},
    {"/hone.v1.TuningService/CancelJob", Role::kClient, true, "id"},
    {"/hone.v1.TuningService/ListJobs", Role::kClient, false, "", true},
    {"/hone.v1.TuningService/ResumeJob", Role::kClient, true, "id"},
    {"/hone.v1.TuningService/Propose", Role::kClient, true, "job", false, kLargestBytes},
    {"/hone.v1.TuningService/ListTrials", Role::kClient, false, "job", true},
    {"/hone.v1.TuningService/LookupBest", Role::kClient, false, "target", true, kWorkloadBytes},
    {"/hone.v1.TuningService/GetCached", Role::kClient, false, ""},
    {"/hone.v1.TuningService/PutCached", Role::kClient, true, "name", false, kCachedBytes},
    {"/hone.v1.TuningService/ListPins", Role::kClient, false, "", true},
    {"/hone.v1.TuningService/ListRecords", Role::kClient, false, "", true},
    {"/hone.v1.TuningService/ListWorkers", Role::kClient, false, "", true},
    {"/hone.v1.TuningService/ExportRecords", Role::kClient, true, "job_id"},
    {"/hone.v1.TuningService/UploadInputs", Role::kClient, false, "", false, kMaxChunkBytes},
    {"/hone.v1.TuningService/GetArtifact", Role::kClient, false, "digest", true},
    {"/hone.v1.TuningService/DescribeFeatures", Role::kClient, false, "", true, kTraceBytes},
    {"/hone.v1.TuningService/DraftSchedule", Role::kClient, false, "", false, kWorkloadBytes},
    {"/hone.v1.TuningService/ExplainSchedule", Role::kClient, false, "", true, kTraceBytes},
    {"/hone.v1.TuningService/ListModels", Role::kClient, false, "name", true},
    {"/hone.v1.TuningService/TrainModel", Role::kClient, true, "target"},
    {"/hone.v1.TuningService/EvaluateModels", Role::kClient, false, "target"},
    {"/hone.v1.TuningService/ExportModel", Role::kClient, true, ""},
    {"/hone.v1.WorkerService/Synchronize", Role::kWorker, false, "worker_id", false, kLargestBytes},
    {"/hone.v1.WorkerService/UploadArtifact", Role::kWorker, false, "", false, kMaxChunkBytes},
    {"/hone.v1.WorkerService/DownloadArtifact", Role::kWorker, false, "digest"},
    {"/hone.v1.AdminService/DrainWorker", Role::kAdmin, true, "id"},
    {"/hone.v1.AdminService/RemoveWorker", Role::kAdmin, true, "id"},
    {"/hone.v1.AdminService/BackupStore", Role::kAdmin, true, "path"},
    {"/hone.v1.AdminService/CompactStore", Role::kAdmin, true, ""},
    {"/hone.v1.AdminService/ImportRecords", Role::kAdmin, true, "", false, kMaxChunkBytes},
    {"/hone.v1.AdminService/ImportModel", Role::kAdmin, true, "", false, kMaxChunkBytes},
    {"/hone.v1.AdminService/ForgetRecords", Role::kAdmin, true, "workload_digest"},
    {"/hone.v1.AdminService/PinBest", Role::kAdmin, true, "workload_digest"},
    {"/hone.v1.AdminService/UnpinBest", Role::kAdmin, true, "workload_digest"},
    {"/hone.v1.DashboardService/OpenDashboard", Role::kClient, true, "", true},
};

absl::Status Deny(absl::string_view reason, absl::string_view message) {
  return rpc::WithReason(absl::PermissionDeniedError(message), reason);
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Fields with texts of many lines or for people, which are not names.
struct LimitedText {
  absl::string_view field;
  int max_bytes;
};
constexpr LimitedText kTexts[] = {
    {"hone.v1.CreateJobRequest.workload", 1 << 20},
    {"hone.v1.CreateJobRequest.space", 8 << 20},
    {"hone.v1.NetworkTask.workload", 1 << 20},
    {"hone.v1.ProposeRequest.traces", 256 << 10},
    {"hone.v1.LookupBestRequest.workload", 1 << 20},
    {"hone.v1.DescribeFeaturesRequest.trace", 8 << 20},
    {"hone.v1.DraftScheduleRequest.workload", 1 << 20},
    {"hone.v1.ExplainScheduleRequest.trace", 8 << 20},
    {"hone.v1.Capabilities.target", 64 << 10},
    {"hone.v1.MeasureResult.detail", 256 << 10},
    {"hone.v1.Environment.cpu", 4096},
    {"hone.v1.Environment.os", 4096},
    {"hone.v1.Environment.compiler", 4096},
};

// A field that must be checked: a text, a message or a list.
struct CheckedField {
  const FieldDescriptor* field;
  int max_bytes = kMaxNameBytes;
  bool is_name = true;  // a text without control characters
};

std::vector<CheckedField> CheckedFieldsOf(const google::protobuf::Descriptor& type) {
  std::vector<CheckedField> fields;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool text = field.type() == FieldDescriptor::TYPE_STRING;
    const bool message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!text && !message && !field.is_repeated()) continue;
    CheckedField& checked = fields.emplace_back(CheckedField{&field});
    for (const LimitedText& known : kTexts) {
      if (known.field != absl::string_view(field.full_name().data(), field.full_name().size())) {
        continue;
      }
      checked.max_bytes = known.max_bytes;
      checked.is_name = false;
    }
  }
  return fields;
}

// Returns the fields of a message type. They are looked up only once, because a worker's call
// contains dozens of messages.
const std::vector<CheckedField>& FieldsOf(const google::protobuf::Descriptor* type) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto& known =
      *new absl::node_hash_map<const google::protobuf::Descriptor*, std::vector<CheckedField>>();
  {
    absl::ReaderMutexLock lock(&mutex);
    if (auto found = known.find(type); found != known.end()) return found->second;
  }
  std::vector<CheckedField> fields = CheckedFieldsOf(*type);
  absl::MutexLock lock(&mutex);
  return known.try_emplace(type, std::move(fields)).first->second;
}

// Returns what is wrong with a text; "" if it is valid.
std::string WrongWith(const std::string& text, const CheckedField& checked) {
  if (text.size() > static_cast<size_t>(checked.max_bytes)) {
    return absl::StrCat(text.size(), " bytes; at most ", checked.max_bytes, " are allowed");
  }
  const bool control =
      checked.is_name && std::any_of(text.begin(), text.end(), [](unsigned char c) {
        return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
      });
  return control ? "it has a control character" : "";
}

// Returns what is wrong with a message, with the path of the field; "" if it is valid.
std::string WrongWith(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  for (const CheckedField& checked : FieldsOf(message.GetDescriptor())) {
    const FieldDescriptor& field = *checked.field;
    const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : -1;
    if (size > kMaxListEntries) {
      return absl::StrCat(FieldWords(field.name()), ": ", size, " entries; at most ",
                          kMaxListEntries, " are allowed");
    }
    const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (size == 0 || (size < 0 && is_message && !reflection.HasField(message, &field))) continue;
    if (!is_message && field.type() != FieldDescriptor::TYPE_STRING) continue;
    for (int i = 0; i < std::max(size, 1); ++i) {
      std::string wrong;
      if (is_message) {
        wrong = WrongWith(size < 0 ? reflection.GetMessage(message, &field)
                                   : reflection.GetRepeatedMessage(message, &field, i));
      } else {
        std::string scratch;
        wrong = WrongWith(size < 0
                              ? reflection.GetStringReference(message, &field, &scratch)
                              : reflection.GetRepeatedStringReference(message, &field, i, &scratch),
                          checked);
      }
      if (wrong.empty()) continue;
      return absl::StrCat(FieldWords(field.name()), size < 0 ? "" : absl::StrCat(" ", i + 1),
                          is_message ? " " : ": ", wrong);
    }
  }
  return "";
}

}  // namespace

absl::Status Readiness::Check() const {
  switch (state_) {
    case State::kLeader:
      return absl::OkStatus();
    case State::kStarting:
      return absl::UnavailableError("the server is starting");
    case State::kStandby:
      return absl::UnavailableError(
          "another server leads, and this one is a standby: name all servers, as in --server "
          "a:7070,b:7070");
    case State::kUnreachable:
      return absl::UnavailableError(
          "the server cannot reach its database; it tries again, and jobs wait");
    case State::kRefused:
      return absl::UnavailableError(
          "the server may not write to its database, and its log says why; jobs wait");
    case State::kDraining:
      break;
  }
  return absl::UnavailableError("the server is shutting down");
}

const Access* FindAccess(absl::string_view method) {
  for (const Access& access : kTable) {
    if (access.method == method) return &access;
  }
  return nullptr;
}

absl::StatusOr<rpc::Identity> Gate::Identify(const grpc::ServerContextBase& context) const {
  if (!options_.trusted) return authenticator_->Identify(context);
  return rpc::Identity{.name = authenticator_->NameOf(context), .role = rpc::Role::kAdmin};
}

absl::StatusOr<rpc::Identity> Gate::Admit(const grpc::ServerContextBase& context,
                                          absl::string_view method,
                                          const google::protobuf::Message* message) const {
  const Access* access = FindAccess(method);
  if (access == nullptr)
    return Deny("METHOD_UNKNOWN", absl::StrCat("the server does not know the call ", method,
                                               "; are both of the same version of Hone?"));
  HONE_ASSIGN_OR_RETURN(rpc::Identity caller, Identify(context));
  if (!options_.trusted) {
    HONE_RETURN_IF_ERROR(
        limiter_->Admit(absl::StrCat(caller.name, " at ", rpc::PeerHost(context))));
  }
  const bool is_allowed = caller.role == access->role || caller.role == rpc::Role::kAdmin ||
                          (caller.role == rpc::Role::kViewer && access->for_viewers);
  if (!is_allowed) {
    return Deny("ROLE", absl::StrCat(caller.name, " has the role ", rpc::RoleName(caller.role),
                                     ", and this needs the role ", rpc::RoleName(access->role),
                                     ": use the configuration of such a caller"));
  }
  if (options_.role.value_or(access->role) != access->role) {
    return Deny("LISTENER",
                absl::StrCat(options_.address.ToText(), " serves ", rpc::RoleName(*options_.role),
                             "s only; use another address of the server"));
  }
  if (message != nullptr) HONE_RETURN_IF_ERROR(CheckMessage(*message));
  if (connections_ != nullptr) connections_->NoteCaller(context.peer());
  return caller;
}

absl::Status Gate::CheckWorkerId(const rpc::Identity& caller, const std::string& worker_id) const {
  if (caller.role == rpc::Role::kAdmin || caller.MayBeCalled(worker_id)) return absl::OkStatus();
  return Deny("WORKER_ID", absl::StrCat("the worker calls itself '", worker_id,
                                        "', but its certificate or token is of '", caller.name,
                                        "'; give it the name of its certificate or token"));
}

absl::Status RequestTooLong(size_t bytes, size_t most) {
  return rpc::WithReason(
      absl::ResourceExhaustedError(absl::StrCat("the request has ", bytes, " bytes; at most ", most,
                                                " are allowed for this call")),
      "MESSAGE_SIZE");
}

absl::Status CheckMessage(const Message& message) {
  const std::string wrong = WrongWith(message);
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

}  // namespace hone::service
