#include "tests/fuzz/handlers_script.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "hone/v1/admin.pb.h"
#include "hone/v1/tuning.pb.h"
#include "hone/v1/worker.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace hone::fuzz {
namespace {

constexpr size_t kMaxMessages = 16;

// Reads a two-byte length and up to that many bytes.
absl::string_view TakePiece(absl::string_view& bytes) {
  if (bytes.size() < 2) {
    bytes = {};
    return {};
  }
  const size_t size = static_cast<uint8_t>(bytes[0]) | static_cast<uint8_t>(bytes[1]) << 8;
  const absl::string_view piece = bytes.substr(2, size);
  bytes.remove_prefix(2 + piece.size());
  return piece;
}

void AddPiece(const std::string& piece, std::string& bytes) {
  Require(piece.size() < 1 << 16, "a seed's message is short");
  bytes += static_cast<char>(piece.size() & 0xff);
  bytes += static_cast<char>(piece.size() >> 8);
  bytes += piece;
}

constexpr char kCode[] = "what a builder made";

v1::SynchronizeRequest Hello(const std::string& id, const std::string& epoch = "e1") {
  v1::SynchronizeRequest request;
  request.set_worker_id(id);
  request.set_epoch(epoch);
  v1::Capabilities& can = *request.mutable_capabilities();
  can.set_host("host");
  can.set_target("target text");
  can.set_target_key("t");
  can.set_can_build(true);
  can.set_can_run(true);
  can.set_build_slots(4);
  can.set_peak_gflops(50);
  request.set_free_build_slots(4);
  request.set_free_run_slots(4);
  return request;
}

void Finish(v1::SynchronizeRequest& request, int lease, double latency_ns) {
  v1::FinishedLease& finished = *request.add_finished();
  finished.set_lease_id(absl::StrCat("fuzz-", lease));
  v1::MeasureResult& result = *finished.mutable_result();
  result.set_outcome(v1::OUTCOME_OK);
  result.set_latency_ns(latency_ns);
  result.add_samples_ns(latency_ns);
  result.set_artifact_digest(Sha256Of(kCode));
}

std::string Upload(const std::string& digest, int64_t total, const std::string& data) {
  v1::WorkerArtifactChunk chunk;
  chunk.set_digest(digest);
  chunk.set_total_bytes(total);
  chunk.set_data(data);
  return chunk.SerializeAsString();
}

std::string Create(const std::string& request_id, int64_t trials) {
  v1::CreateJobRequest request;
  request.set_request_id(request_id);
  request.set_workload("fake op 12");
  request.set_target("native");
  request.set_max_trials(trials);
  request.set_seed(1);
  return request.SerializeAsString();
}

std::string Propose(const std::string& job, const std::string& proposer) {
  v1::ProposeRequest request;
  request.set_job(job);
  request.set_proposer(proposer);
  for (const char* trace : {"1,2,3", "foreign 4,5,6", "nonsense", "99,1,1"}) {
    request.add_traces(trace);
  }
  return request.SerializeAsString();
}

std::string TrialsOf(const std::string& job) {
  v1::ListTrialsRequest request;
  request.set_job(job);
  request.set_page_size(2);
  request.set_with_traces(true);
  return request.SerializeAsString();
}

template <typename Request>
std::string WithId(const std::string& id) {
  Request request;
  request.set_id(id);
  return request.SerializeAsString();
}

template <typename Request>
std::string WithDigest(const std::string& digest) {
  Request request;
  request.set_digest(digest);
  return request.SerializeAsString();
}

}  // namespace

const std::vector<Method>& Methods() {
  static const auto* const methods =
      new std::vector<Method>{{"/hone.v1.WorkerService/Synchronize", "worker"},
                              {"/hone.v1.TuningService/CreateJob", "client"},
                              {"/hone.v1.WorkerService/UploadArtifact", "worker", true},
                              {"/hone.v1.WorkerService/DownloadArtifact", "worker", false, true},
                              {"/hone.v1.TuningService/GetJob", "client"},
                              {"/hone.v1.TuningService/WatchJob", "client", false, true},
                              {"/hone.v1.TuningService/CancelJob", "client"},
                              {"/hone.v1.TuningService/ListJobs", "client"},
                              {"/hone.v1.TuningService/ResumeJob", "client"},
                              {"/hone.v1.TuningService/LookupBest", "client"},
                              {"/hone.v1.TuningService/ListRecords", "client"},
                              {"/hone.v1.TuningService/ListWorkers", "client"},
                              {"/hone.v1.TuningService/ExportRecords", "client", false, true},
                              {"/hone.v1.TuningService/GetArtifact", "client", false, true},
                              {"/hone.v1.TuningService/DescribeFeatures", "client"},
                              {"/hone.v1.TuningService/ListModels", "client"},
                              {"/hone.v1.TuningService/TrainModel", "client"},
                              {"/hone.v1.TuningService/EvaluateModels", "client"},
                              {"/hone.v1.AdminService/DrainWorker", "admin"},
                              {"/hone.v1.AdminService/RemoveWorker", "admin"},
                              {"/hone.v1.AdminService/CompactStore", "admin"},
                              {"/hone.v1.AdminService/ImportRecords", "admin", true},
                              {"/hone.v1.AdminService/BackupStore", "admin"},
                              {"/hone.v1.TuningService/ListPins", "client"},
                              {"/hone.v1.AdminService/ForgetRecords", "admin"},
                              {"/hone.v1.AdminService/PinBest", "admin"},
                              {"/hone.v1.AdminService/UnpinBest", "admin"},
                              {"/hone.v1.TuningService/DraftSchedule", "client"},
                              // Appended, because scripts number the methods.
                              {"/hone.v1.TuningService/UploadInputs", "client", true},
                              {"/hone.v1.TuningService/ExportModel", "client", false, true},
                              {"/hone.v1.AdminService/ImportModel", "admin", true},
                              {"/hone.v1.TuningService/ExplainSchedule", "client"},
                              {"/hone.v1.TuningService/GetCached", "client"},
                              {"/hone.v1.TuningService/PutCached", "client"},
                              {"/hone.v1.TuningService/Propose", "client"},
                              {"/hone.v1.TuningService/ListTrials", "client"}};
  return *methods;
}

std::vector<ScriptedCall> ReadScript(absl::string_view bytes) {
  std::vector<ScriptedCall> calls;
  if (!bytes.empty()) bytes.remove_prefix(1);
  while (bytes.size() >= 2 && calls.size() < kMaxScriptedCalls) {
    ScriptedCall call;
    call.method = &Methods()[static_cast<uint8_t>(bytes[0]) % Methods().size()];
    call.flags = static_cast<uint8_t>(bytes[1]);
    bytes.remove_prefix(2);
    absl::string_view content = TakePiece(bytes);
    if (!call.method->takes_many) {
      call.messages.emplace_back(content);
    } else {
      while (!content.empty() && call.messages.size() < kMaxMessages) {
        call.messages.emplace_back(TakePiece(content));
      }
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

ScriptWriter& ScriptWriter::Add(absl::string_view method, const std::vector<std::string>& messages,
                                uint8_t flags) {
  const auto& all = Methods();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Method& known) {
    return absl::EndsWith(known.path, absl::StrCat("/", method));
  });
  Require(found != all.end(), "a method is called so", method);
  bytes_ += static_cast<char>(found - all.begin());
  bytes_ += static_cast<char>(flags);
  std::string content;
  for (const std::string& message : messages) {
    if (found->takes_many) {
      AddPiece(message, content);
    } else {
      content += message;
    }
  }
  AddPiece(content, bytes_);
  return *this;
}

std::string TuningScript(bool on_disk) {
  ScriptWriter script(on_disk);
  const std::string code = kCode, digest = Sha256Of(code);
  script.Add("Synchronize", {Hello("w").SerializeAsString()});
  script.Add("UploadArtifact",
             {Upload(digest, static_cast<int64_t>(code.size()), code.substr(0, 5)),
              Upload("", 0, code.substr(5))});
  script.Add("CreateJob", {Create("r", 2)});
  script.Add("Propose", {Propose("1", "fuzz")});
  // Finishes everything granted; results of unknown leases are ignored.
  v1::SynchronizeRequest request = Hello("w");
  for (int lease = 1; lease <= 28; ++lease) Finish(request, lease, 100 + lease);
  script.Add("Synchronize", {Hello("w").SerializeAsString()});
  for (int round = 0; round < 20; ++round) {
    script.Add("Synchronize", {request.SerializeAsString()});
  }
  script.Add("ListTrials", {TrialsOf("1")});
  script.Add("GetJob", {WithId<v1::GetJobRequest>("1")});
  script.Add("WatchJob", {WithId<v1::GetJobRequest>("1")});
  v1::LookupBestRequest lookup;
  lookup.set_workload("fake op 12");
  lookup.set_target("t");
  script.Add("LookupBest", {lookup.SerializeAsString()});
  lookup.set_workload("fake op 24");
  lookup.set_nearest(true);
  script.Add("LookupBest", {lookup.SerializeAsString()});
  v1::ListRecordsRequest list;
  list.set_page_size(2);
  list.set_job_id("1");
  script.Add("ListRecords", {list.SerializeAsString()});
  list.set_page_token("2");
  script.Add("ListRecords", {list.SerializeAsString()});
  script.Add("ExportRecords", {""});
  script.Add("ListJobs", {""}).Add("ListWorkers", {""}).Add("ListModels", {""});
  script.Add("GetArtifact", {WithDigest<v1::GetArtifactRequest>(digest)});
  script.Add("DownloadArtifact", {WithDigest<v1::DownloadArtifactRequest>(digest)});
  v1::DescribeFeaturesRequest features;
  features.set_trace("trace 1");
  features.set_target("t");
  script.Add("DescribeFeatures", {features.SerializeAsString()});
  v1::DraftScheduleRequest draft;
  draft.set_workload("fake op 12");
  draft.set_target("t");
  script.Add("DraftSchedule", {draft.SerializeAsString()});
  v1::TrainModelRequest train;
  train.set_target("t");
  script.Add("TrainModel", {train.SerializeAsString()});
  v1::EvaluateModelsRequest evaluate;
  evaluate.set_target("t");
  script.Add("EvaluateModels", {evaluate.SerializeAsString()});
  v1::CompactStoreRequest compact;
  compact.set_keep_best(1);
  compact.set_dry_run(true);
  script.Add("CompactStore", {compact.SerializeAsString()});
  v1::BackupStoreRequest backup;
  backup.set_path("copy");
  script.Add("BackupStore", {backup.SerializeAsString()});
  script.Add("DrainWorker", {WithId<v1::DrainWorkerRequest>("w")});
  script.Add("RemoveWorker", {WithId<v1::RemoveWorkerRequest>("w")});
  script.Add("Synchronize", {Hello("w").SerializeAsString()});
  return script.bytes();
}

std::string HostileScript() {
  ScriptWriter script(/*on_disk=*/false);
  const std::string code = kCode, digest = Sha256Of(code);
  script.Add("Synchronize", {Hello("w").SerializeAsString()});
  script.Add("Synchronize", {Hello("v").SerializeAsString()}, kOthersToken);
  script.Add("CreateJob", {Create("r", 8)});
  script.Add("CreateJob", {Create("r", 9)});
  script.Add("Propose", {Propose("1", "fuzz")});
  script.Add("Propose", {Propose("1", "a b")});
  script.Add("Propose", {Propose("2", "fuzz")});
  script.Add("CreateJob", {Create("s", 4)}, kNoToken);
  script.Add("Synchronize", {Hello("w").SerializeAsString()});
  v1::SynchronizeRequest another = Hello("v");  // a lease of another worker, and an unknown lease
  Finish(another, 1, 50);
  Finish(another, 999, 50);
  script.Add("Synchronize", {another.SerializeAsString()});
  v1::SynchronizeRequest finished = Hello("w");
  Finish(finished, 1, 100);
  Finish(finished, 1, 90);
  script.Add("Synchronize", {finished.SerializeAsString()});
  script.Add("Synchronize", {finished.SerializeAsString()});  // replayed
  script.Add("UploadArtifact", {Upload(digest, 1000, code)});
  script.Add("UploadArtifact", {Upload(digest, 5, "other")});
  script.Add("UploadArtifact", {});
  script.Add("Synchronize", {Hello("w", "e2").SerializeAsString()});
  script.Add("Synchronize", {finished.SerializeAsString()});  // of the previous epoch
  v1::SynchronizeRequest absurd = Hello("w", "e2");
  Finish(absurd, 5, -1);
  script.Add("Synchronize", {absurd.SerializeAsString()});
  v1::SynchronizeRequest held = Hello("v");
  for (int lease = 1; lease < 9; ++lease) {
    v1::HeldLease& entry = *held.add_held();
    entry.set_lease_id(absl::StrCat("fuzz-", lease));
    entry.set_phase(v1::LEASE_PHASE_RUNNING);
  }
  script.Add("Synchronize", {held.SerializeAsString()});
  script.Add("Synchronize", {held.SerializeAsString()}, kTimePasses);
  script.Add("CancelJob", {WithId<v1::CancelJobRequest>("1")});
  script.Add("ResumeJob", {WithId<v1::ResumeJobRequest>("1")});
  v1::DrainWorkerRequest resume;
  resume.set_id("w");
  resume.set_resume(true);
  script.Add("DrainWorker", {resume.SerializeAsString()});
  script.Add("RemoveWorker", {WithId<v1::RemoveWorkerRequest>("v")}, kOthersToken);
  script.Add("GetJob", {WithId<v1::GetJobRequest>("'; DROP TABLE job; --")});
  v1::TextChunk chunk;
  chunk.set_data("{\"hone_records\":1,\"store\":\"x\"}\n{\"end\":{\"texts\":0,");
  script.Add("ImportRecords", {chunk.SerializeAsString()});
  script.Add("ListRecords", {"\xff\xff\xff"});
  return script.bytes();
}

}  // namespace hone::fuzz
