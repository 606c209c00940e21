#include "server/service/reads/reader_threads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/seconds_text.h"
#include "common/base/thread_priority.h"
#include "common/rpc/status.h"
#include "server/job/actor/executor.h"
#include "server/store/read_limit.h"
#include "spdlog/spdlog.h"

namespace hone::service {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);

absl::Status RefusedRead(absl::string_view why) {
  return rpc::WithRetryAfter(absl::ResourceExhaustedError(why), kRetry);
}

absl::Status ReadersEnd() { return absl::UnavailableError("the server is shutting down"); }

absl::Status CallerHasGone() { return absl::CancelledError("the caller has gone"); }

bool IsCancelled(const ReaderThreads::Read& read) {
  return read.cancelled != nullptr && read.cancelled();
}

}  // namespace

ReaderThreads::~ReaderThreads() {
  Stop();
  Join(absl::InfiniteDuration());
}

void ReaderThreads::Run(Read read, Work work) {
  Lane& lane = read.lane == ReaderLane::kShort ? short_ : long_;
  lane.Add(std::move(read), std::move(work));
}

void ReaderThreads::Tick() {
  short_.Tick();
  long_.Tick();
}

void ReaderThreads::Stop() {
  short_.Stop();
  long_.Stop();
}

bool ReaderThreads::Join(absl::Duration limit) {
  const absl::Time end = SteadyNow() + limit;
  return short_.Join(limit) && long_.Join(end - SteadyNow());
}

ReaderThreads::Lane::Lane(const ReaderLaneOptions& options)
    : options_(options),
      max_running_(static_cast<size_t>(std::max(1, options.threads - 1))),
      serving_(options.threads) {
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Serve(); });
}

void ReaderThreads::Lane::Add(Read read, Work work) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    refused = stopped_ ? ReadersEnd() : CheckLimits(read);
    if (absl::IsResourceExhausted(refused)) ++refused_;
    if (refused.ok()) {
      const auto caller = callers_.try_emplace(read.caller).first;
      caller->second.waiting.push_back({std::move(read), std::move(work), SteadyNow()});
      ++all_;
      return Update(caller);
    }
  }
  std::move(work)(refused);
}

absl::Status ReaderThreads::Lane::CheckLimits(const Read& read) const {
  if (read.continues) return absl::OkStatus();
  if (all_ >= options_.max_of_all) {
    return RefusedRead(absl::StrCat(all_, " reads of the store run or wait, which is the limit of ",
                                    "this server; try again later"));
  }
  const auto caller = callers_.find(read.caller);
  if (caller == callers_.end()) return absl::OkStatus();
  const size_t own = caller->second.waiting.size() + caller->second.running;
  if (own < options_.max_of_caller) return absl::OkStatus();
  return RefusedRead(absl::StrCat(read.caller, " has ", own,
                                  " reads of the store that run or wait, which is the limit for "
                                  "one caller; try again later"));
}

void ReaderThreads::Lane::Update(Callers::iterator caller) {
  auto& [name, state] = *caller;
  const bool may_run = !state.waiting.empty() && state.running < max_running_;
  if (may_run && !state.is_next) turns_.push_back(caller);
  if (!may_run && state.is_next) std::erase(turns_, caller);
  state.is_next = may_run;
  if (state.waiting.empty() && state.running == 0) callers_.erase(caller);
}

void ReaderThreads::Lane::Serve() {
  if (options_.nice > 0) LowerThreadPriority(options_.nice);
  const auto ready = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopped_ || !turns_.empty(); };
  while (true) {
    Waiting one;
    Callers::iterator caller;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (turns_.empty()) {
        --serving_;
        return;
      }
      caller = turns_.front();
      turns_.pop_front();
      Caller& state = caller->second;
      state.is_next = false;
      one = std::move(state.waiting.front());
      state.waiting.pop_front();
      ++state.running;
      ++running_;
      Update(caller);
    }
    RunOne(one);
    absl::MutexLock lock(&mutex_);
    --all_;
    --running_;
    --caller->second.running;
    Update(caller);
  }
}

void ReaderThreads::Lane::RunOne(Waiting& one) {
  const absl::Time end =
      one.read.has_time_limit ? SteadyNow() + options_.max_time : absl::InfiniteFuture();
  const auto check = [&]() -> absl::Status {
    if (stopped_) return ReadersEnd();
    if (IsCancelled(one.read)) return CallerHasGone();
    if (SteadyNow() < end) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat("the call read the store for ", SecondsText(options_.max_time),
                     ", which is the longest time; ask for less, for example with filters"));
  };
  const store::ReadLimit limit(check);
  const absl::Status threw = job::CatchExceptions([&] { std::move(one.work)(check()); });
  if (!threw.ok()) spdlog::error("a call that read the store failed: {}", threw.ToString());
}

void ReaderThreads::Lane::Tick() {
  std::vector<std::pair<Work, absl::Status>> ended;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = SteadyNow();
    for (auto next = callers_.begin(); next != callers_.end();) {
      const auto caller = next++;
      std::deque<Waiting>& waiting = caller->second.waiting;
      for (auto one = waiting.begin(); one != waiting.end();) {
        const bool gone = IsCancelled(one->read);
        if (!gone && (one->read.continues || now < one->since + options_.max_wait)) {
          ++one;
          continue;
        }
        ended.emplace_back(std::move(one->work),
                           gone ? CallerHasGone()
                                : RefusedRead(absl::StrCat(
                                      "the call waited ", SecondsText(options_.max_wait),
                                      " for other calls that read the store; try again later")));
        one = waiting.erase(one);
        --all_;
        if (!gone) ++refused_;
      }
      Update(caller);
    }
  }
  for (auto& [work, why] : ended) std::move(work)(why);
}

ReaderThreads::Counts ReaderThreads::Lane::counts() const {
  absl::MutexLock lock(&mutex_);
  return {.waiting = static_cast<int64_t>(all_ - running_),
          .running = static_cast<int64_t>(running_),
          .refused = refused_};
}

void ReaderThreads::Lane::Stop() {
  std::vector<Work> ended;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (auto next = callers_.begin(); next != callers_.end();) {
      const auto caller = next++;
      for (Waiting& one : caller->second.waiting) ended.push_back(std::move(one.work));
      all_ -= caller->second.waiting.size();
      caller->second.waiting.clear();
      Update(caller);
    }
  }
  for (Work& work : ended) std::move(work)(ReadersEnd());
}

bool ReaderThreads::Lane::Join(absl::Duration limit) {
  {
    absl::MutexLock lock(&mutex_);
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return serving_ == 0; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), limit)) return false;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return true;
}

}  // namespace hone::service
