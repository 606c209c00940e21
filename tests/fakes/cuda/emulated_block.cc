#include "tests/fakes/cuda/emulated_block.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMaxThreads = 1024;

HoneEmulationIndex IndexOf(int64_t number, const std::array<int64_t, 3>& extents) {
  return {static_cast<int32_t>(number % extents[0]),
          static_cast<int32_t>(number / extents[0] % extents[1]),
          static_cast<int32_t>(number / extents[0] / extents[1])};
}

int64_t Product(const std::array<int64_t, 3>& extents) {
  return extents[0] * extents[1] * extents[2];
}

}  // namespace

EmulatedLaunch::EmulatedLaunch(const HoneEmulatedKernel& kernel, const LaunchOptions& options,
                               void** parameters)
    : kernel_(kernel), options_(options), parameters_(parameters), rng_(options.seed) {
  host_.launch = this;
  host_.barrier = [](HoneEmulationHost* host, int32_t line) {
    Of(host).Wait(State::kBarrier, line);
  };
  host_.shuffle = [](HoneEmulationHost* host, uint32_t mask, uint64_t bits, int32_t source,
                     int32_t line) {
    EmulatedLaunch& launch = Of(host);
    const int self = launch.running_;
    Thread& thread = launch.threads_[self];
    thread.mask = mask;
    thread.bits = bits;
    thread.source = source;
    launch.Wait(State::kShuffle, line);
    return launch.threads_[self].bits;
  };
  host_.copy_async = [](HoneEmulationHost* host, void* to, const void* from, int32_t bytes) {
    EmulatedLaunch& launch = Of(host);
    for (const void* const address : {static_cast<const void*>(to), from}) {
      if (reinterpret_cast<uintptr_t>(address) % bytes != 0) {
        launch.Fail(absl::StrCat(launch.Name(launch.running_), " copies ", bytes,
                                 " bytes asynchronously that are not aligned"));
        return;
      }
    }
    std::memset(to, kPoison, bytes);
    launch.threads_[launch.running_].copies.push_back({to, from, bytes});
  };
  host_.commit_group = [](HoneEmulationHost* host) {
    Thread& thread = Of(host).threads_[Of(host).running_];
    thread.groups.push_back(std::exchange(thread.copies, {}));
  };
  host_.wait_group = [](HoneEmulationHost* host, int32_t pending) {
    Thread& thread = Of(host).threads_[Of(host).running_];
    while (thread.groups.size() > static_cast<size_t>(pending)) {
      Complete(thread.groups.front());
      thread.groups.pop_front();
    }
  };
}

void EmulatedLaunch::Complete(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
}

void EmulatedLaunch::Wait(State state, int32_t line) {
  const int self = running_;
  threads_[self].state = state;
  threads_[self].line = line;
  fibers_[self]->Pause();
}

absl::Status EmulatedLaunch::Run(HoneEmulationHost** host) {
  const int64_t count = Product(options_.block);
  if (count < 1 || count > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel_.name, " has ", count, " threads in a block"));
  }
  for (int t = 0; t < count; ++t) {
    fibers_.push_back(std::make_unique<Fiber>([this] { kernel_.run(parameters_); }));
  }
  dynamic_shared_.resize(options_.dynamic_shared_bytes + 128);
  const auto address = reinterpret_cast<uintptr_t>(dynamic_shared_.data());
  host_.dynamic_shared = dynamic_shared_.data() + (128 - address % 128) % 128;
  *host = &host_;
  for (const int block : Order(Product(options_.grid))) {
    host_.block = IndexOf(block, options_.grid);
    HONE_RETURN_IF_ERROR(RunBlock());
  }
  *host = nullptr;
  return absl::OkStatus();
}

absl::Status EmulatedLaunch::RunBlock() {
  std::fill(kernel_.shared_begin, kernel_.shared_end, kPoison);
  std::fill(dynamic_shared_.begin(), dynamic_shared_.end(), kPoison);
  threads_.assign(fibers_.size(), {});
  const auto count = static_cast<int64_t>(threads_.size());
  for (int64_t t = 0; t < count; ++t) threads_[t].index = IndexOf(t, options_.block);
  for (;;) {
    for (const int warp : Order((count + kWarp - 1) / kWarp)) RunWarp(warp);
    HONE_RETURN_IF_ERROR(status_);
    if (std::ranges::all_of(threads_, [](const Thread& t) { return t.state == State::kEnded; })) {
      return absl::OkStatus();
    }
    HONE_RETURN_IF_ERROR(PassBarrier());
  }
}

// Runs a warp until no thread of it can go on without other warps.
void EmulatedLaunch::RunWarp(int warp) {
  const int first = warp * kWarp;
  const auto lanes = std::min<int64_t>(kWarp, static_cast<int64_t>(threads_.size()) - first);
  do {
    for (const int lane : Order(lanes)) {
      if (threads_[first + lane].state == State::kReady) Resume(first + lane);
    }
  } while (status_.ok() && ResolveShuffles(warp));
}

void EmulatedLaunch::Resume(int t) {
  running_ = t;
  Thread& thread = threads_[t];
  host_.thread = thread.index;
  host_.lane = t % kWarp;
  fibers_[t]->Resume();
  if (thread.state != State::kReady) return;
  thread.state = State::kEnded;
  const auto is_empty = [](const std::vector<Copy>& copies) { return copies.empty(); };
  if (!is_empty(thread.copies) || !std::ranges::all_of(thread.groups, is_empty)) {
    Fail(absl::StrCat(Name(t), " ends without having waited for its asynchronous copies"));
  }
}

// Lets lanes go on for whose shuffle all lanes of the mask have arrived. Returns whether there are
// any.
bool EmulatedLaunch::ResolveShuffles(int warp) {
  const int first = warp * kWarp;
  const int lanes = std::min<int>(kWarp, static_cast<int>(threads_.size()) - first);
  std::array<uint64_t, kWarp> results = {};
  bool any = false;
  for (int lane = 0; lane < lanes; ++lane) {
    Thread& thread = threads_[first + lane];
    if (thread.state != State::kShuffle) continue;
    const std::string name =
        absl::StrCat("the shuffle of ", Name(first + lane), " in line ", thread.line);
    if ((thread.mask >> lane & 1) == 0) {
      Fail(absl::StrCat(name, " has a mask without its own lane"));
      return false;
    }
    for (int other = 0; other < lanes; ++other) {
      if ((thread.mask >> other & 1) == 0) continue;
      const Thread& partner = threads_[first + other];
      if (partner.state != State::kShuffle || partner.line != thread.line ||
          partner.mask != thread.mask) {
        Fail(absl::StrCat(name, " has a mask with lane ", other, ", which does not take part"));
        return false;
      }
    }
    if (thread.source < 0 || thread.source >= lanes || (thread.mask >> thread.source & 1) == 0) {
      Fail(absl::StrCat(name, " reads lane ", thread.source,
                        ", which is not there or not in its mask"));
      return false;
    }
    results[lane] = threads_[first + thread.source].bits;
    any = true;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    Thread& thread = threads_[first + lane];
    if (thread.state != State::kShuffle) continue;
    thread.bits = results[lane];
    thread.state = State::kReady;
  }
  return any;
}

absl::Status EmulatedLaunch::PassBarrier() {
  const Thread* some = nullptr;
  for (size_t t = 0; t < threads_.size(); ++t) {
    const Thread& thread = threads_[t];
    if (thread.state == State::kBarrier && some == nullptr) some = &thread;
  }
  for (size_t t = 0; t < threads_.size(); ++t) {
    const Thread& thread = threads_[t];
    if (thread.state == State::kEnded) {
      Fail(absl::StrCat(Name(static_cast<int>(t)),
                        " has ended while others wait at the barrier in line ", some->line));
    } else if (thread.line != some->line) {
      Fail(absl::StrCat(Name(static_cast<int>(t)), " waits at the barrier in line ", thread.line,
                        " while others wait at that in line ", some->line));
    }
  }
  for (Thread& thread : threads_) thread.state = State::kReady;
  return status_;
}

std::vector<int> EmulatedLaunch::Order(int64_t count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (options_.order == EmulatedOrder::kBackward) std::ranges::reverse(order);
  if (options_.order == EmulatedOrder::kRandom) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng_.Below(i)]);
  }
  return order;
}

void EmulatedLaunch::Fail(const std::string& problem) {
  status_.Update(
      absl::FailedPreconditionError(absl::StrCat("kernel ", kernel_.name, ": ", problem)));
}

std::string EmulatedLaunch::Name(int t) const {
  const HoneEmulationIndex& thread = threads_[t].index;
  return absl::StrCat("thread (", thread.x, ", ", thread.y, ", ", thread.z, ") of block (",
                      host_.block.x, ", ", host_.block.y, ", ", host_.block.z, ")");
}

}  // namespace hone::cuda
