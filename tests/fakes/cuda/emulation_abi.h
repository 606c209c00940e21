#ifndef HONE_TESTS_FAKES_CUDA_EMULATION_ABI_H_
#define HONE_TESTS_FAKES_CUDA_EMULATION_ABI_H_

#include <stdint.h>

// The interface between an emulated module, which is a shared object, and the program that runs it.
extern "C" {

struct HoneEmulationIndex {
  int32_t x, y, z;
};

// What a kernel sees and calls while one of its threads runs. Lines are those of the compiled text:
// threads that wait for each other do so at the same line.
struct HoneEmulationHost {
  HoneEmulationIndex thread, block;
  int32_t lane;          // of the thread's warp
  void* dynamic_shared;  // the launch's dynamic shared memory
  void (*barrier)(HoneEmulationHost*, int32_t line);
  // Returns the bits of lane `source`. All lanes of the mask take part.
  uint64_t (*shuffle)(HoneEmulationHost*, uint32_t mask, uint64_t bits, int32_t source,
                      int32_t line);
  void (*copy_async)(HoneEmulationHost*, void* to, const void* from, int32_t bytes);
  void (*commit_group)(HoneEmulationHost*);
  // Waits until at most `pending` groups of the thread's copies are unfinished.
  void (*wait_group)(HoneEmulationHost*, int32_t pending);
};

struct HoneEmulatedKernel {
  const char* name;
  int32_t parameters;
  // Runs one thread. `parameters` are pointers to the parameters, as for cuLaunchKernel.
  void (*run)(void** parameters);
  // The static shared memory of all kernels of the module; null if they use none.
  char *shared_begin, *shared_end;
};

// The symbols of a module: HoneEmulationHost* hone_host, which the caller sets; the kernels, which
// end with one without a name.
#define HONE_EMULATION_HOST_SYMBOL "hone_host"
#define HONE_EMULATED_KERNELS_SYMBOL "hone_emulated_kernels"

}  // extern "C"

#endif  // HONE_TESTS_FAKES_CUDA_EMULATION_ABI_H_
