#include "tests/fakes/cuda/emulated_module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "tests/temporary_folder.h"

namespace hone::cuda {
namespace {

// The names of the functions of a text that start with `extern "C" __global__ void`.
std::vector<std::string> KernelsOf(absl::string_view text) {
  constexpr absl::string_view kGlobal = "__global__ void", kBounds = "__launch_bounds__(";
  std::vector<std::string> kernels;
  for (size_t at = text.find(kGlobal); at != absl::string_view::npos; at = text.find(kGlobal, at)) {
    at += kGlobal.size();
    const size_t bounds = text.find_first_not_of(" \n", at);
    if (text.substr(bounds, kBounds.size()) == kBounds) at = text.find(')', bounds) + 1;
    const size_t begin = text.find_first_not_of(" \n", at), end = text.find('(', begin);
    if (end == absl::string_view::npos) break;
    kernels.emplace_back(text.substr(begin, end - begin));
  }
  return kernels;
}

// Each module has a namespace and a section for its shared memory, and its kernels, which are C
// functions, have names of their own.
std::string Source(absl::Span<const std::string> texts, bool numbered) {
  std::string source = "#include \"tests/fakes/cuda/emulation.h\"\n", table;
  for (size_t m = 0; m < texts.size(); ++m) {
    const std::string section = absl::StrCat("hone_shared_", m);
    const std::vector<std::string> kernels = KernelsOf(texts[m]);
    absl::StrAppend(&source,
                    "#undef __shared__\n#define __shared__ static __attribute__((used, section(\"",
                    section, "\")))\n");
    for (const std::string& kernel : kernels) {
      absl::StrAppend(&source, "#define ", kernel, " ", kernel, "_of_module_", m, "\n");
    }
    absl::StrAppend(&source, "namespace module_", m, " {\n#line 1 \"module\"\n", texts[m],
                    "\n#undef INFINITY\n#undef NAN\n}\n");
    for (const std::string& kernel : kernels) absl::StrAppend(&source, "#undef ", kernel, "\n");
    // There is no such section in a module without shared memory.
    const bool shares = texts[m].find("\n  __shared__ ") != std::string::npos;
    if (shares) {
      absl::StrAppend(&source, "extern \"C\" __attribute__((visibility(\"hidden\"))) char __start_",
                      section, "[], __stop_", section, "[];\n");
    }
    for (const std::string& kernel : kernels) {
      absl::StrAppend(&table, "  HONE_EMULATE(\"", numbered ? absl::StrCat(m, ":") : "", kernel,
                      "\", (module_", m, "::", kernel, "_of_module_", m, "), ",
                      shares ? absl::StrCat("__start_", section, ", __stop_", section)
                             : std::string("nullptr, nullptr"),
                      "),\n");
    }
  }
  return absl::StrCat(source,
                      "extern \"C\" __attribute__((visibility(\"default\"))) HoneEmulatedKernel "
                      "hone_emulated_kernels[] = {\n",
                      table, "  {nullptr, 0, nullptr, nullptr, nullptr}};\n");
}

absl::StatusOr<std::string> Build(absl::Span<const std::string> texts, bool numbered) {
  const TemporaryFolder folder;
  const std::string source = folder / "module.cc", log = folder / "log", path = folder / "module";
  HONE_RETURN_IF_ERROR(WriteFileAtomically(source, Source(texts, numbered), Durability::kProcess));
  // Pointers to elements are cast to pointers to vectors, as is usual in CUDA.
  const std::string command = absl::StrCat(
      "c++ -std=c++17 -O1 -w -I. -fno-strict-aliasing -ffp-contract=off -fvisibility=hidden "
      "-fno-exceptions -fno-asynchronous-unwind-tables -shared -fPIC ",
      source, " -o ", path, " >", log, " 2>&1");
  if (std::system(command.c_str()) == 0) return ReadFile(path);
  return absl::InvalidArgumentError(ReadFile(log).value_or("c++ cannot be run"));
}

}  // namespace

absl::StatusOr<std::string> BuildEmulatedModule(absl::string_view text) {
  return Build({std::string(text)}, /*numbered=*/false);
}

absl::StatusOr<std::string> BuildEmulatedModules(absl::Span<const std::string> texts) {
  return Build(texts, /*numbered=*/true);
}

absl::StatusOr<std::unique_ptr<EmulatedModule>> EmulatedModule::Load(
    absl::string_view shared_object) {
  auto module = std::unique_ptr<EmulatedModule>(new EmulatedModule);
  module->file_ = memfd_create("cubin", MFD_CLOEXEC);
  if (module->file_ < 0 || write(module->file_, shared_object.data(), shared_object.size()) !=
                               static_cast<ssize_t>(shared_object.size())) {
    return absl::InternalError("no memory for the module");
  }
  const std::string path = absl::StrCat("/proc/self/fd/", module->file_);
  module->handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module->handle_ == nullptr) return absl::InvalidArgumentError(dlerror());
  module->host_ =
      static_cast<HoneEmulationHost**>(dlsym(module->handle_, HONE_EMULATION_HOST_SYMBOL));
  const auto* kernel =
      static_cast<const HoneEmulatedKernel*>(dlsym(module->handle_, HONE_EMULATED_KERNELS_SYMBOL));
  if (module->host_ == nullptr || kernel == nullptr) {
    return absl::InvalidArgumentError("this is no emulated module");
  }
  for (; kernel->name != nullptr; ++kernel) module->kernels_.emplace(kernel->name, kernel);
  return module;
}

EmulatedModule::~EmulatedModule() {
  if (handle_ != nullptr) dlclose(handle_);
  if (file_ >= 0) close(file_);
}

absl::StatusOr<int> EmulatedModule::Parameters(absl::string_view kernel) const {
  const auto found = kernels_.find(kernel);
  if (found == kernels_.end()) return absl::NotFoundError(absl::StrCat("no kernel ", kernel));
  return found->second->parameters;
}

absl::Status EmulatedModule::Launch(absl::string_view kernel, const LaunchOptions& options,
                                    void** parameters) {
  const auto found = kernels_.find(kernel);
  if (found == kernels_.end()) return absl::NotFoundError(absl::StrCat("no kernel ", kernel));
  return EmulatedLaunch(*found->second, options, parameters).Run(host_);
}

}  // namespace hone::cuda
