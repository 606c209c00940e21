#include "tests/fuzz/handlers_world.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/token_table.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/fakes/manual_store.h"
#include "tests/fuzz/fuzz_target.h"

namespace hone::fuzz {
namespace {

// How long a call may be idle before time advances for it.
constexpr absl::Duration kIdle = absl::Microseconds(500);
constexpr absl::Duration kStep = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Seconds(60);  // in real time
constexpr size_t kMaxKept = size_t{32} << 20;

// Whether all other threads of this process wait. On a loaded machine, a thread that handles a call
// may have to wait for a core; time must not advance meanwhile.
bool OthersWait() {
  const std::string own = std::to_string(gettid());
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);  // "4711 (name) S …"
    const size_t state = line.rfind(')') + 2;
    if (state < line.size() && (line[state] == 'R' || line[state] == 'D')) return false;
  }
  return true;
}

std::unique_ptr<store::Store> MakeStore(const TemporaryFolder& folder, bool on_disk) {
  if (!on_disk) return std::make_unique<store::ManualStore>();
  auto store = store::OpenSqliteStore(folder / "hone.db", {.check_integrity = false});
  Require(store.ok(), "a new store opens", store.status().ToString());
  return *std::move(store);
}

std::shared_ptr<const rpc::TokenTable> Tokens() {
  std::string text;
  for (const rpc::Role role : {rpc::Role::kClient, rpc::Role::kWorker, rpc::Role::kAdmin}) {
    // The worker's token is valid for every name.
    const std::string name = role == rpc::Role::kWorker ? "*" : std::string(rpc::RoleName(role));
    text += rpc::TokenLine({name, role}, HandlersWorld::TokenOf(rpc::RoleName(role)));
  }
  const auto table = rpc::TokenTable::Parse(text);
  Require(table.ok(), "the tokens are read", table.status().ToString());
  return std::make_shared<const rpc::TokenTable>(*table);
}

// One call of any kind, from the caller's side.
class Exchange final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Exchange(grpc::GenericStub& stub, const std::string& method,
           const std::vector<std::string>& messages, const std::string& token, int most_answers)
      : messages_(messages), most_answers_(most_answers) {
    if (!token.empty()) {
      context_.AddMetadata(rpc::kTokenHeader, absl::StrCat(rpc::kTokenPrefix, token));
    }
    stub.PrepareBidiStreamingCall(&context_, method, grpc::StubOptions(), this);
    StartRead(&answer_);
    WriteNext();
    StartCall();
  }
  bool Ended(absl::Duration patience) { return ended_.WaitForNotificationWithTimeout(patience); }
  HandlersWorld::Reply Take() { return {std::move(status_), std::move(answers_)}; }

  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    std::vector<grpc::Slice> slices;
    std::string bytes;
    if (answer_.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices) {
        bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
    }
    kept_ += bytes.size();
    if (kept_ < kMaxKept) answers_.push_back(std::move(bytes));
    if (static_cast<int>(answers_.size()) >= most_answers_) context_.TryCancel();
    StartRead(&answer_);
  }
  void OnDone(const grpc::Status& status) override {
    status_ = status;
    ended_.Notify();
  }

 private:
  void WriteNext() {
    if (next_ == messages_.size()) return StartWritesDone();
    const grpc::Slice slice(messages_[next_++]);
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
  }

  const std::vector<std::string>& messages_;
  const int most_answers_;
  size_t next_ = 0;
  size_t kept_ = 0;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_, answer_;
  std::vector<std::string> answers_;
  grpc::Status status_;
  absl::Notification ended_;
};

}  // namespace

HandlersWorld::HandlersWorld(bool on_disk)
    : folder_(std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp"),
      authenticator_(Tokens()),
      limiter_(&clock_, 0, 0),
      certificates_(rpc::ServerSecurity{}),
      store_(MakeStore(folder_, on_disk)),
      uploads_("upload", &clock_),
      downloads_("download", &clock_),
      fleet_(&clock_, &artifacts_,
             {.instance = "fuzz",
              .on_standing = [this](const std::string& id) { standings_.Keep(id); }}),
      standings_(
          {.clock = &clock_, .steady_clock = &clock_, .fleet = &fleet_, .store = store_.get()}),
      worker_memory_(
          {.clock = &clock_, .steady_clock = &clock_, .fleet = &fleet_, .store = store_.get()}),
      services_{.clock = &clock_,
                .store = store_.get(),
                .fleet = &fleet_,
                .artifacts = &artifacts_,
                .environment = &environment_,
                .executor = &executor_},
      jobs_(services_, {.respect_timing_lock = false}),
      models_(services_, /*respect_timing_lock=*/false),
      drafts_(services_, {.respect_timing_lock = false}),
      readers_(service::ReaderOptions{.short_reads = {.threads = 1}, .long_reads = {.threads = 1}}),
      watches_(&clock_, &jobs_, &fleet_, &readers_),
      handlers_({.clock = &clock_,
                 .authenticator = &authenticator_,
                 .readiness = &readiness_,
                 .store = store_.get(),
                 .fleet = &fleet_,
                 .artifacts = &artifacts_,
                 .environment = &environment_,
                 .executor = &executor_,
                 .readers = &readers_,
                 .jobs = &jobs_,
                 .models = &models_,
                 .drafts = &drafts_,
                 .standings = &standings_,
                 .worker_memory = &worker_memory_,
                 .watches = &watches_,
                 .uploads = &uploads_,
                 .downloads = &downloads_,
                 .target_wait = absl::Seconds(5)}) {
  const rpc::Address address{.path = folder_ / "s"};
  auto listener = service::Listener::Start(
      {.address = address},
      {.certificates = &certificates_, .limiter = &limiter_, .services = &handlers_});
  Require(listener.ok(), "it listens", listener.status().ToString());
  listener_ = *std::move(listener);
  Require(jobs_.Restore().ok(), "there is nothing to restore");
  readiness_.Set(service::Readiness::State::kLeader);
  channel_ = *rpc::CreateChannel(address.ToText(), {});
}

HandlersWorld::~HandlersWorld() {
  readiness_.Set(service::Readiness::State::kDraining);
  jobs_.Suspend();
  models_.Stop();
  readers_.Stop();
  watches_.Drain();
  fleet_.Shutdown();
  channel_.reset();
  listener_->Shutdown(absl::Now() + absl::Seconds(1));
  Work();
}

std::string HandlersWorld::TokenOf(absl::string_view role) {
  return absl::StrCat("token-of-the-", role);
}

bool HandlersWorld::Work() {
  bool any = false;
  // Callbacks of a commit may schedule more work. Errors of a write go to its caller.
  do {
    store_->Flush().IgnoreError();
    any = executor_.RunAll();
  } while (any);
  return any;
}

HandlersWorld::Reply HandlersWorld::Call(const std::string& method,
                                         const std::vector<std::string>& messages,
                                         const std::string& token, int most_answers) {
  grpc::GenericStub stub(channel_);
  Exchange exchange(stub, method, messages, token, most_answers);
  const absl::Time limit = absl::Now() + kPatience;
  // The first rounds do not advance time, because most calls are answered by then.
  for (int round = 0; !exchange.Ended(kIdle); ++round) {
    Work();
    if (round >= 4 && OthersWait()) Pass(kStep, kStep);
    Require(absl::Now() < limit, "every call is answered", method);
  }
  Work();
  return exchange.Take();
}

void HandlersWorld::Pass(absl::Duration time, absl::Duration step) {
  for (absl::Duration passed; passed < time; passed += step) {
    clock_.Advance(step);
    fleet_.Tick();
    jobs_.Tick();
    standings_.Tick();
    worker_memory_.Tick();
    uploads_.Tick();
    downloads_.Tick();
    watches_.Tick();
    Work();
  }
}

void HandlersWorld::CheckWhatMustHold() {
  // Without calls, workers are lost and then removed, and their work fails with a reason.
  Pass(absl::Minutes(20), absl::Seconds(5));
  const std::vector<std::string> unfinished = jobs_.Unfinished();
  Require(unfinished.empty(), "every job ends",
          unfinished.empty()
              ? ""
              : absl::StrCat("phase ", static_cast<int>((*jobs_.Get(unfinished[0]))->phase.kind)));
  const fleet::FleetCounts counts = fleet_.Counts();
  Require(counts.items_waiting == 0 && counts.items_leased == 0, "nothing is left in the fleet",
          absl::StrCat(counts.items_waiting, " wait, ", counts.items_leased, " are leased"));
  Require(fleet_.Workers().empty(), "every worker that is silent is forgotten");
  std::set<std::pair<std::string, int64_t>> trials;
  store::RecordQuery query{.page_size = 1000};
  while (true) {
    const auto page = store_->Query(query);
    Require(page.ok(), "records are read", page.status().ToString());
    for (const record::Record& record : *page) {
      query.after_id = record.id;
      Require(record.result.outcome != record::Outcome::kOk || record.result.latency_ns > 0,
              "what is recorded as right has a latency");
      // Imported records have another store's name. A trial of a job is screened only once.
      if (record.policy.name != "screen" || record.job_id.find('/') != std::string::npos) continue;
      Require(trials.emplace(record.job_id, record.trial).second, "a trial is recorded once",
              absl::StrCat("job ", record.job_id, ", trial ", record.trial));
    }
    if (static_cast<int>(page->size()) < query.page_size) break;
  }
}

}  // namespace hone::fuzz
