#include "worker/builder/link.h"

#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"
#include "worker/builder/stub_library.h"

LLD_HAS_DRIVER(elf)

namespace hone::builder {
namespace {

// An in-memory file that the linker opens by its name under /proc.
class MemoryFile {
 public:
  static absl::StatusOr<std::unique_ptr<MemoryFile>> Create(absl::string_view bytes) {
    const int fd = memfd_create("hone-link", MFD_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, "create a memory file");
    auto file = std::unique_ptr<MemoryFile>(new MemoryFile(fd));
    while (!bytes.empty()) {
      const ssize_t n = write(fd, bytes.data(), bytes.size());
      if (n < 0) return ErrnoStatus(errno, "write a memory file");
      bytes.remove_prefix(n);
    }
    return file;
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  explicit MemoryFile(int fd) : fd_(fd) {}
  int fd_;
};

// The linker's other inputs; made once per triple.
struct Surroundings {
  std::unique_ptr<MemoryFile> version_script;
  std::vector<std::unique_ptr<MemoryFile>> libraries;
};

ABSL_CONST_INIT absl::Mutex linker_mutex(absl::kConstInit);

absl::Status RunLinker(const std::vector<std::string>& arguments)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(linker_mutex) {
  static bool usable = true;
  if (!usable) return absl::InternalError("the linker crashed before in this process");
  std::vector<const char*> words = {"ld.lld"};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  std::string output;
  llvm::raw_string_ostream stream(output);
  const lld::Result result = lld::lldMain(words, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (!result.canRunAgain) {
    usable = false;
    return absl::InternalError(absl::StrCat("the linker crashed: ", output));
  }
  if (result.retCode != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("link: ", absl::StripTrailingAsciiWhitespace(output)));
  }
  return absl::OkStatus();
}

// Runs the linker with its output in the scratch folder, and returns the output.
absl::StatusOr<std::string> LinkToBytes(std::vector<std::string> arguments,
                                        const std::string& scratch_dir)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(linker_mutex) {
  // LLD itself would only say "cannot open output file".
  if (access(scratch_dir.c_str(), W_OK | X_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat("write to ", scratch_dir));
  }
  const std::string output = absl::StrCat(scratch_dir, "/.link-", getpid());
  arguments.insert(arguments.end(), {"-o", output});
  HONE_RETURN_IF_ERROR(RunLinker(arguments));
  absl::StatusOr<std::string> bytes = ReadFile(output);
  unlink(output.c_str());
  return bytes;
}

absl::StatusOr<const Surroundings*> SurroundingsFor(const LinkOptions& options)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(linker_mutex) {
  static auto* const by_triple = new std::map<std::string, Surroundings>;
  if (const auto found = by_triple->find(options.triple); found != by_triple->end()) {
    return &found->second;
  }
  Surroundings made;
  HONE_ASSIGN_OR_RETURN(
      made.version_script,
      MemoryFile::Create(absl::StrCat("{ global: ", target::kFunctionPrefix, "*; local: *; };\n")));
  for (const StubLibrary& library : KnownLibraries()) {
    HONE_ASSIGN_OR_RETURN(const std::string object, CompileStub(library, options.triple));
    HONE_ASSIGN_OR_RETURN(const auto file, MemoryFile::Create(object));
    HONE_ASSIGN_OR_RETURN(const std::string bytes,
                          LinkToBytes({"-shared", "--threads=1", "--build-id=none", "-soname",
                                       library.soname, file->path()},
                                      options.scratch_dir));
    HONE_ASSIGN_OR_RETURN(made.libraries.emplace_back(), MemoryFile::Create(bytes));
  }
  return &by_triple->emplace(options.triple, std::move(made)).first->second;
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(absl::string_view object, const LinkOptions& options) {
  if (!absl::StartsWith(object,
                        "\x7f"
                        "ELF")) {  // the linker would parse it as a script
    return absl::InvalidArgumentError("link: the input is not an ELF object file");
  }
  absl::MutexLock lock(&linker_mutex);
  HONE_ASSIGN_OR_RETURN(const Surroundings* const surroundings, SurroundingsFor(options));
  HONE_ASSIGN_OR_RETURN(const auto input, MemoryFile::Create(object));
  std::vector<std::string> arguments = {"-shared",
                                        "--threads=1",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "--no-undefined",
                                        "-z",
                                        "now",
                                        "-z",
                                        "noexecstack",
                                        "--version-script",
                                        surroundings->version_script->path(),
                                        input->path(),
                                        "--as-needed"};
  for (const auto& library : surroundings->libraries) arguments.push_back(library->path());
  return LinkToBytes(std::move(arguments), options.scratch_dir);
}

}  // namespace hone::builder
