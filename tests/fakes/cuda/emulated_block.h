#ifndef HONE_TESTS_FAKES_CUDA_EMULATED_BLOCK_H_
#define HONE_TESTS_FAKES_CUDA_EMULATED_BLOCK_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/rng.h"
#include "tests/fakes/cuda/emulation_abi.h"
#include "tests/fakes/cuda/fiber.h"

namespace hone::cuda {

// The order in which blocks, the warps of a block, and the threads of a warp run.
enum class EmulatedOrder : uint8_t { kForward, kBackward, kRandom };

struct LaunchOptions {
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t dynamic_shared_bytes = 0;
  EmulatedOrder order = EmulatedOrder::kForward;
  uint64_t seed = 1;  // for kRandom
};

// Runs the blocks of a launch one after the other, and the threads of a block as fibers. A thread
// runs until it has to wait before another one runs. Likewise, a warp runs until all of its threads
// wait for other warps. Shared memory holds NaN before a block writes it. Asynchronous copies
// complete as late as waits allow; until then, their destination holds NaN.
//
// FailedPrecondition: some threads end, or wait elsewhere, while others wait at a barrier; a
// shuffle has a mask with a lane that does not take part or without its own lane, or reads a lane
// outside its mask; a thread ends without having waited for its copies; a copy is not aligned.
// InvalidArgument: more threads than a GPU has in a block.
class EmulatedLaunch {
 public:
  EmulatedLaunch(const HoneEmulatedKernel& kernel, const LaunchOptions& options, void** parameters);

  // `host` gets the address of the object that the kernel calls.
  absl::Status Run(HoneEmulationHost** host);

 private:
  static constexpr int kWarp = 32;
  static constexpr char kPoison = '\xff';

  enum class State : uint8_t { kReady, kBarrier, kShuffle, kEnded };
  struct Copy {
    void* to;
    const void* from;
    int32_t bytes;
  };
  struct Thread {
    HoneEmulationIndex index;
    State state = State::kReady;
    int32_t line = 0;  // where it waits
    // For a shuffle.
    uint32_t mask = 0;
    uint64_t bits = 0;
    int32_t source = 0;
    std::deque<std::vector<Copy>> groups;  // committed, oldest first
    std::vector<Copy> copies;              // not committed yet
  };
  // The object that the kernel calls, with the launch that handles the calls.
  struct Host : HoneEmulationHost {
    EmulatedLaunch* launch;
  };

  absl::Status RunBlock();
  void RunWarp(int warp);
  void Resume(int thread);
  bool ResolveShuffles(int warp);
  absl::Status PassBarrier();
  std::vector<int> Order(int64_t count);
  void Fail(const std::string& problem);
  std::string Name(int thread) const;

  // Called by the running thread.
  static EmulatedLaunch& Of(HoneEmulationHost* host) { return *static_cast<Host*>(host)->launch; }
  void Wait(State state, int32_t line);
  static void Complete(const std::vector<Copy>& copies);

  const HoneEmulatedKernel& kernel_;
  const LaunchOptions options_;
  void** parameters_;
  Host host_ = {};
  Rng rng_;
  std::vector<char> dynamic_shared_;
  std::vector<Thread> threads_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  int running_ = 0;
  absl::Status status_;
};

}  // namespace hone::cuda

#endif  // HONE_TESTS_FAKES_CUDA_EMULATED_BLOCK_H_
