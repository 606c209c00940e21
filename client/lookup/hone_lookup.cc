#include "client/lookup/hone_lookup.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "client/lookup/kernel_index.h"
#include "common/target/kernel_library.h"
#include "common/target/thread_pool.h"

namespace hone::lookup {
namespace {

#if defined(__x86_64__)
constexpr char kArch[] = "x86_64";
#elif defined(__aarch64__)
constexpr char kArch[] = "aarch64";
#else
#error "Hone runs on x86-64 and AArch64"
#endif

// Not a std::string, whose destructor would keep the library from being unloaded.
thread_local char error_text[1024] = "";

hone_lookup_status Fail(hone_lookup_status status, const std::string& message) {
  std::snprintf(error_text, sizeof error_text, "%s", message.c_str());
  return status;
}

// A kernel of the index, which is loaded when it is first needed.
class FolderKernel : public hone_lookup_kernel {
 public:
  FolderKernel(const std::string& folder, const Kernel& entry)
      : hone_lookup_kernel(), folder_(folder), entry_(entry) {
    for (const Buffer& buffer : entry.buffers) {
      buffers_.push_back({buffer.name.c_str(), buffer.dtype.c_str(), buffer.role == Role::kOutput,
                          buffer.role == Role::kConstant, static_cast<int32_t>(buffer.shape.size()),
                          buffer.shape.data(), buffer.bytes});
    }
    buffer_count = static_cast<int32_t>(buffers_.size());
    buffers = buffers_.data();
    workload = entry.workload.c_str();
    target = entry.target.c_str();
    tolerance = entry.tolerance;
    latency_ns = entry.latency_ns;
    gflops = entry.gflops;
  }

  const Kernel& entry() const { return entry_; }
  const target::KernelLibrary& library() const { return library_; }
  // Why Load failed.
  const std::string& message() const { return message_; }

  // Loads the kernel at the first call. Thread-safe.
  hone_lookup_status Load() {
    std::call_once(once_, [this] { status_ = LoadOnce(); });
    return status_;
  }

 private:
  hone_lookup_status LoadOnce() {
    if (entry_.arch != kArch) return Unsupported();
    const std::string path = SharedObjectPath(folder_, entry_.checksum);
    std::string bytes;
    if (!ReadFile(path, bytes)) return Bad("cannot read " + path);
    // Damaged code could crash the program, even while it is loaded.
    if (Checksum(bytes) != entry_.checksum) return Bad(path + " is truncated or damaged");
    std::string error;
    if (library_.Load(path, error) != target::KernelLibrary::Error::kNone) {
      return Bad(path + ": " + error);
    }
    if (!library_.SupportsCpu(buffers_.size())) return Unsupported();
    prepack = library_.prepack();
    packed_bytes = library_.packed_bytes();
    for (int32_t b = 0; b < buffer_count; ++b) used_.push_back(library_.Uses(b) ? 1 : 0);
    is_used = used_.data();
    return HONE_LOOKUP_OK;
  }

  hone_lookup_status Unsupported() {
    message_ = "the kernel for " + entry_.target + " needs a CPU of " + entry_.arch + " with";
    for (const std::string& feature : entry_.features) message_ += " " + feature;
    return HONE_LOOKUP_UNSUPPORTED_CPU;
  }

  hone_lookup_status Bad(const std::string& message) {
    message_ = message + "; export the kernel again";
    return HONE_LOOKUP_BAD_KERNEL;
  }

  const std::string& folder_;
  const Kernel& entry_;
  std::vector<hone_lookup_buffer> buffers_;
  std::vector<int32_t> used_;
  std::once_flag once_;
  hone_lookup_status status_ = HONE_LOOKUP_OK;
  std::string message_;
  target::KernelLibrary library_;
};

const target::KernelLibrary& LibraryOf(const hone_lookup_kernel* kernel) {
  return static_cast<const FolderKernel*>(kernel)->library();
}

// Whether to try `a` before `b`.
bool IsBetter(const FolderKernel* a, const FolderKernel* b) {
  const size_t more = a->entry().features.size(), less = b->entry().features.size();
  return more != less ? more > less : a->latency_ns < b->latency_ns;
}

// The best kernel that runs here, or why there is none.
hone_lookup_status Choose(const std::vector<FolderKernel*>& candidates, double tolerance,
                          const hone_lookup_kernel** kernel, std::string& message) {
  hone_lookup_status status = HONE_LOOKUP_NOT_FOUND;
  for (FolderKernel* const candidate : candidates) {
    // NaN allows no kernel.
    if (!(candidate->tolerance <= tolerance)) continue;
    const hone_lookup_status loaded = candidate->Load();
    if (loaded == HONE_LOOKUP_OK) {
      *kernel = candidate;
      return loaded;
    }
    // Report a broken kernel rather than one for another machine.
    if (loaded > status) {
      status = loaded;
      message = candidate->message();
    }
  }
  return status;
}

// Says why no kernel was found. `words`: the canonical form of `workload`.
std::string NotFound(const std::string& folder, const std::string& workload,
                     const std::string& words) {
  const std::string none = folder + " has no kernel ", into = " -o " + folder;
  if (words.find(' ') != std::string::npos) {
    return none + "for " + workload +
           "; if this is a complete workload, add one with: hone export " + workload + into;
  }
  if (IsDigest(words)) {
    return none + "for the workload with the digest " + words +
           "; add one with: hone export OP key=value..." + into;
  }
  return none + "with the name " + words +
         "; give one this name with: hone export OP key=value... --name " + words + into;
}

}  // namespace
}  // namespace hone::lookup

struct hone_lookup {
  std::string folder;
  hone::lookup::Index index;
  std::deque<hone::lookup::FolderKernel> kernels;
  // Kernels by name and by digest. Those of one name are in the order in which they are tried.
  std::unordered_map<std::string, std::vector<hone::lookup::FolderKernel*>> found_by;
};

using hone::lookup::Fail;

extern "C" {

hone_lookup_status hone_lookup_open(const char* folder, hone_lookup** lookup) noexcept {
  if (lookup != nullptr) *lookup = nullptr;
  if (folder == nullptr || lookup == nullptr) {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT, "hone_lookup_open was called with a null pointer");
  }
  if (*folder == '\0') {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT, "hone_lookup_open was called with an empty path");
  }
  auto opened = std::make_unique<hone_lookup>();
  // Kernels are loaded later, when the working directory may have changed.
  std::error_code unknown;
  opened->folder = std::filesystem::absolute(folder, unknown).string();
  if (unknown) {
    return Fail(HONE_LOOKUP_BAD_FOLDER, std::string("cannot find the current folder, which ") +
                                            folder + " is relative to: " + unknown.message());
  }
  const std::string path = hone::lookup::IndexPath(opened->folder);
  std::string text, error;
  if (!hone::lookup::ReadFile(path, text)) {
    return Fail(HONE_LOOKUP_BAD_FOLDER,
                "cannot read " + path +
                    "; write kernels into the folder with: hone export OP key=value... -o " +
                    opened->folder);
  }
  if (!hone::lookup::Parse(text, opened->index, error)) {
    return Fail(HONE_LOOKUP_BAD_FOLDER,
                path + ": " + error + "; export the kernels again into an empty folder");
  }
  for (const hone::lookup::Kernel& entry : opened->index.kernels) {
    hone::lookup::FolderKernel* const kernel = &opened->kernels.emplace_back(opened->folder, entry);
    opened->found_by[entry.workload].push_back(kernel);
    for (const std::string& name : entry.names) opened->found_by[name].push_back(kernel);
  }
  for (auto& [name, kernels] : opened->found_by) {
    std::stable_sort(kernels.begin(), kernels.end(), hone::lookup::IsBetter);
  }
  *lookup = opened.release();
  return HONE_LOOKUP_OK;
}

hone_lookup_status hone_lookup_find(hone_lookup* lookup, const char* workload, double tolerance,
                                    const hone_lookup_kernel** kernel) noexcept {
  if (kernel != nullptr) *kernel = nullptr;
  if (lookup == nullptr || workload == nullptr || kernel == nullptr) {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT, "hone_lookup_find was called with a null pointer");
  }
  const std::string words = hone::lookup::Canonical(workload, lookup->index.defaults);
  if (words.empty()) {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT,
                std::string("'") + workload +
                    "' is not a workload; write it as in \"matmul m=512 n=512 k=512\"");
  }
  const auto known = lookup->found_by.find(words);
  if (known == lookup->found_by.end()) {
    return Fail(HONE_LOOKUP_NOT_FOUND, hone::lookup::NotFound(lookup->folder, workload, words));
  }
  std::string message = std::string("the kernel for ") + workload + " in " + lookup->folder +
                        " was tuned with a greater tolerance";
  const hone_lookup_status status = hone::lookup::Choose(known->second, tolerance, kernel, message);
  return status == HONE_LOOKUP_OK ? status : Fail(status, message);
}

hone_lookup_status hone_lookup_find_size(hone_lookup* lookup, const char* workload, const char* key,
                                         double tolerance, const hone_lookup_kernel** kernel,
                                         int64_t* value) noexcept {
  if (kernel != nullptr) *kernel = nullptr;
  if (lookup == nullptr || workload == nullptr || key == nullptr || kernel == nullptr ||
      value == nullptr) {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT,
                "hone_lookup_find_size was called with a null pointer");
  }
  const std::string words = hone::lookup::Canonical(workload, lookup->index.defaults);
  hone::lookup::WordsWithoutKey wanted;
  if (!hone::lookup::RemoveKey(words, key, wanted)) {
    return Fail(
        HONE_LOOKUP_INVALID_ARGUMENT,
        std::string("'") + workload + "' is not a workload with a number as its key " + key);
  }
  // By value. std::map, because few kernels have these words.
  std::map<int64_t, const std::vector<hone::lookup::FolderKernel*>*> sizes;
  for (const auto& [name, kernels] : lookup->found_by) {
    hone::lookup::WordsWithoutKey other;
    if (hone::lookup::RemoveKey(name, key, other) && other.words == wanted.words &&
        other.value >= wanted.value) {
      sizes[other.value] = &kernels;
    }
  }
  std::string message = lookup->folder + " has no kernel for " + workload + ", or for a larger " +
                        key + "; add one with: hone export " + workload + " -o " + lookup->folder;
  hone_lookup_status status = HONE_LOOKUP_NOT_FOUND;
  for (const auto& [size, kernels] : sizes) {
    const hone_lookup_status chosen = hone::lookup::Choose(*kernels, tolerance, kernel, message);
    if (chosen == HONE_LOOKUP_OK) {
      *value = size;
      return chosen;
    }
    status = std::max(status, chosen);
  }
  return Fail(status, message);
}

int64_t hone_lookup_workspace_bytes(const hone_lookup_kernel* kernel, int32_t threads) noexcept {
  return kernel == nullptr ? 0 : hone::lookup::LibraryOf(kernel).WorkspaceBytes(threads);
}

int32_t hone_lookup_run(const hone_lookup_kernel* kernel, void* const* buffers, const void* packed,
                        void* workspace, const HoneRuntime* runtime) noexcept {
  if (kernel == nullptr || buffers == nullptr) return HONE_KERNEL_MISALIGNED_BUFFER;
  return hone::lookup::LibraryOf(kernel).Run(buffers, packed, workspace, runtime);
}

HoneRuntime hone_lookup_threads(int32_t threads) noexcept { return hone_threads(threads); }

hone_lookup_status hone_lookup_call(const hone_lookup_kernel* kernel,
                                    void* const* buffers) noexcept {
  if (kernel == nullptr || buffers == nullptr) {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT, "hone_lookup_call was called with a null pointer");
  }
  const hone::target::KernelLibrary& library = hone::lookup::LibraryOf(kernel);
  const std::optional<int32_t> status = library.Call(buffers);
  if (!status.has_value()) {
    return Fail(HONE_LOOKUP_OUT_OF_MEMORY,
                "out of memory for the workspace of the kernel and constants of " +
                    std::to_string(kernel->packed_bytes) + " bytes");
  }
  if (*status == HONE_KERNEL_OK) return HONE_LOOKUP_OK;
  if (*status == HONE_KERNEL_OVERLAP) {
    return Fail(HONE_LOOKUP_INVALID_ARGUMENT, "an output overlaps another buffer");
  }
  return Fail(HONE_LOOKUP_INVALID_ARGUMENT,
              "a buffer is null or not aligned to " + std::to_string(HONE_LOOKUP_ALIGNMENT) +
                  " bytes (the kernel returned " + std::to_string(*status) + ")");
}

void hone_lookup_close(hone_lookup* lookup) noexcept { delete lookup; }

const char* hone_lookup_error(void) noexcept { return hone::lookup::error_text; }

}  // extern "C"
