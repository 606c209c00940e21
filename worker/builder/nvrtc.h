#ifndef HONE_WORKER_BUILDER_NVRTC_H_
#define HONE_WORKER_BUILDER_NVRTC_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::builder {

// The output of NVRTC for a source text.
struct CompiledCuda {
  std::string cubin;  // for exactly one architecture
  std::string ptx;
  std::string log;  // warnings, and for each kernel its registers and memory
};

// NVIDIA's compiler for CUDA C++, from a library that is opened at run time. It needs neither a GPU
// nor a driver. Not thread-safe.
class Nvrtc {
 public:
  // Returns this process's compiler, opened once. Searches in this order: the file or folder that
  // the environment variable HONE_NVRTC names; the library path of the process and the system;
  // $CUDA_HOME and /usr/local/cuda; ~/.cache/hone/nvrtc, where deploy/install-deps.sh puts it; the
  // packages nvidia-cuda-nvrtc-cu12 and nvidia-cuda-nvrtc of $VIRTUAL_ENV, of the user's and of the
  // system's Python. Prefers the newest version in a place, and in all places those whose code the
  // driver of this machine can load, if it has one. NotFound: there is none; the message tells what
  // to install.
  static absl::StatusOr<const Nvrtc*> Loaded();

  // "12.9".
  std::string Version() const;
  const std::string& path() const { return path_; }
  // The names of the architectures that it compiles for, ascending: "sm_75".
  std::vector<std::string> Architectures() const;

  // Compiles a source for an architecture such as "sm_80" or "sm_90a". InvalidArgument: the source
  // has an error; the message is the compiler's log. FailedPrecondition: this version does not know
  // the architecture; the message lists those it knows. Internal: the compiler fails.
  absl::StatusOr<CompiledCuda> Compile(const std::string& source,
                                       const std::string& architecture) const;

 private:
  struct Api;
  Nvrtc(std::unique_ptr<Api> api, std::string path);
  static absl::StatusOr<std::unique_ptr<Nvrtc>> Open(const std::string& library);
  absl::Status Check(int code, const char* what) const;

  const std::unique_ptr<Api> api_;
  const std::string path_;
};

// Returns the names and paths of the library that are tried, in order, on a machine whose driver
// supports this major version of CUDA; 0: it has no driver.
std::vector<std::string> NvrtcCandidates(int driver_major);

// Returns the folders that Nvrtc::Loaded reads: those of the candidates on this machine, and those
// that the user names for libraries. A process that calls this before it enters a sandbox with
// these folders can load NVRTC later.
std::vector<std::string> NvrtcFolders();

}  // namespace hone::builder

#endif  // HONE_WORKER_BUILDER_NVRTC_H_
