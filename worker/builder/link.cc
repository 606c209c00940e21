#include "worker/builder/link.h"

#include <lld/Common/Driver.h>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/InterfaceStub/ELFObjHandler.h>
#include <llvm/InterfaceStub/IFSHandler.h>
#include <llvm/InterfaceStub/IFSStub.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"

LLD_HAS_DRIVER(elf)

namespace hone::builder {
namespace {

// A shared library that a kernel may call: its name, and its functions, separated by blanks.
struct KnownLibrary {
  const char* soname;
  const char* functions;
};

// Libgcc (divisions on ARMv7), libc (getauxval and prctl for the CPU guard, the
// memory functions that the optimizer creates from loops, and what the runtime of networks uses),
// libm, and the loader.
constexpr KnownLibrary kKnownLibraries[] = {
    {"libgcc_s.so.1",
     "__aeabi_idiv __aeabi_idivmod __aeabi_ldivmod __aeabi_uidiv __aeabi_uidivmod "
     "__aeabi_uldivmod"},
    {"libc.so.6",
     "__aeabi_memclr __aeabi_memclr4 __aeabi_memclr8 __aeabi_memcpy __aeabi_memcpy4 "
     "__aeabi_memcpy8 __aeabi_memmove __aeabi_memmove4 __aeabi_memmove8 __aeabi_memset "
     "__aeabi_memset4 __aeabi_memset8 __errno_location aligned_alloc bzero calloc clock_gettime "
     "close dlerror dlopen dlsym free getauxval getenv getpid lseek madvise malloc memchr memcmp "
     "memcpy memmove memset mmap mprotect munmap open prctl pthread_create pthread_join "
     "pthread_once pthread_self pthread_sigmask read sched_yield sigdelset sigfillset snprintf "
     "strchr strcmp strerror strlen strstr syscall vsnprintf"},
    {"libm.so.6",
     "exp exp2 exp2f expf expm1 expm1f erf erff log log1p log1pf log2 log2f logf pow powf sin sinf "
     "cos cosf tanh tanhf sqrt sqrtf fma fmaf floor floorf ceil ceilf rint rintf round roundf "
     "trunc truncf fmin fminf fmax fmaxf fmod fmodf nearbyint nearbyintf"},
};

// The loader, which has the function that finds variables of threads.
KnownLibrary LoaderOf(const llvm::Triple& triple) {
  const char* const name = triple.isARM()       ? "ld-linux-armhf.so.3"
                           : triple.isAArch64() ? "ld-linux-aarch64.so.1"
                                                : "ld-linux-x86-64.so.2";
  return {name, "__tls_get_addr"};
}

// The stubs of the known libraries; made once per triple.
using Libraries = std::vector<std::unique_ptr<MemoryFile>>;

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
  if (result.retCode == 0) return absl::OkStatus();
  const std::string message = absl::StrCat("link: ", absl::StripTrailingAsciiWhitespace(output));
  for (const absl::string_view full :
       {"No space left on device", "Disk quota exceeded", "File too large"}) {
    if (absl::StrContains(output, full)) return absl::ResourceExhaustedError(message);
  }
  return absl::InvalidArgumentError(message);
}

// Returns a stub of a library, which has its symbols but no code. With stubs the builder needs no
// host toolchain, and kernels for other machines link the same way.
absl::StatusOr<std::unique_ptr<MemoryFile>> MakeStub(const KnownLibrary& library,
                                                     const LinkOptions& options) {
  llvm::ifs::IFSStub stub;
  stub.SoName = library.soname;
  stub.Target = llvm::ifs::parseTriple(options.triple);
  // LLVM's conversion does not know this architecture.
  if (llvm::Triple(options.triple).isARM()) stub.Target.Arch = llvm::ELF::EM_ARM;
  for (const absl::string_view function : absl::StrSplit(library.functions, ' ')) {
    stub.Symbols.emplace_back(std::string(function)).Type = llvm::ifs::IFSSymbolType::Func;
  }
  const std::string path = absl::StrCat(options.scratch_dir, "/.stub-", getpid());
  if (llvm::Error error = llvm::ifs::writeBinaryStub(path, stub)) {
    return absl::InternalError(absl::StrCat("write a stub of ", library.soname, " to ", path, ": ",
                                            llvm::toString(std::move(error))));
  }
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  unlink(path.c_str());
  HONE_RETURN_IF_ERROR(bytes.status());
  return MemoryFile::Create(*bytes);
}

absl::StatusOr<const Libraries*> LibrariesFor(const LinkOptions& options)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(linker_mutex) {
  static auto* const by_triple = new std::map<std::string, Libraries>;
  if (const auto found = by_triple->find(options.triple); found != by_triple->end()) {
    return &found->second;
  }
  Libraries made;
  for (const KnownLibrary& library : kKnownLibraries) {
    HONE_ASSIGN_OR_RETURN(made.emplace_back(), MakeStub(library, options));
  }
  HONE_ASSIGN_OR_RETURN(made.emplace_back(),
                        MakeStub(LoaderOf(llvm::Triple(options.triple)), options));
  return &by_triple->emplace(options.triple, std::move(made)).first->second;
}

// Puts object files into one file, because a network may have more of them than this process may
// open files. The linker then takes all members of the archive.
absl::StatusOr<std::unique_ptr<MemoryFile>> ArchiveOf(absl::Span<const absl::string_view> objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (const absl::string_view object : objects) {
    const llvm::MemoryBufferRef member(llvm::StringRef(object.data(), object.size()), "kernel.o");
    // The linker ends the process at a damaged member.
    if (llvm::Error error = llvm::object::ObjectFile::createELFObjectFile(member).takeError()) {
      return absl::InvalidArgumentError(
          absl::StrCat("link: an object file is damaged: ", llvm::toString(std::move(error))));
    }
    members.emplace_back(member);
  }
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> archive = llvm::writeArchiveToBuffer(
      members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
      /*Deterministic=*/true, /*Thin=*/false);
  if (!archive) {
    return absl::InvalidArgumentError(absl::StrCat("link: ", llvm::toString(archive.takeError())));
  }
  const llvm::StringRef bytes = (*archive)->getBuffer();
  return MemoryFile::Create({bytes.data(), bytes.size()});
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(absl::Span<const absl::string_view> objects,
                                             const LinkOptions& options) {
  for (const absl::string_view object : objects) {
    if (!absl::StartsWith(object, "\177ELF")) {  // the linker would parse it as a script
      return absl::InvalidArgumentError("link: the input is not an ELF object file");
    }
  }
  // LLD itself would only say "cannot open output file".
  if (access(options.scratch_dir.c_str(), W_OK | X_OK) != 0) {
    return ErrnoStatus(errno, absl::StrCat("write to ", options.scratch_dir));
  }
  absl::MutexLock lock(&linker_mutex);
  HONE_ASSIGN_OR_RETURN(const Libraries* const libraries, LibrariesFor(options));
  HONE_ASSIGN_OR_RETURN(
      const auto version_script,
      MemoryFile::Create(absl::StrCat("{ global: ", options.visible, "*; local: *; };\n")));
  const std::string output = absl::StrCat(options.scratch_dir, "/.link-", getpid());
  std::vector<std::string> arguments = absl::StrSplit(
      "-shared --threads=1 --build-id=none --gc-sections --no-undefined -z now -z noexecstack "
      "--as-needed",
      ' ');
  arguments.insert(arguments.end(), {"--version-script", version_script->path(), "-o", output});
  HONE_ASSIGN_OR_RETURN(const auto archive, ArchiveOf(objects));
  arguments.insert(arguments.end(), {"--whole-archive", archive->path(), "--no-whole-archive"});
  for (const auto& library : *libraries) arguments.push_back(library->path());
  HONE_RETURN_IF_ERROR(RunLinker(arguments));
  absl::StatusOr<std::string> bytes = ReadFile(output);
  unlink(output.c_str());
  return bytes;
}

absl::StatusOr<std::string> TripleOf(absl::string_view object) {
  using llvm::ELF::Elf32_Ehdr;
  Elf32_Ehdr header;  // e_machine has the same place in files of 64 bits
  if (!absl::StartsWith(object, "\177ELF") || object.size() < sizeof header)
    return absl::InvalidArgumentError("link: the input is not an ELF object file");
  std::memcpy(&header, object.data(), sizeof header);
  switch (header.e_machine) {
    case llvm::ELF::EM_X86_64:
      return "x86_64-pc-linux-gnu";
    case llvm::ELF::EM_AARCH64:
      return "aarch64-unknown-linux-gnu";
    case llvm::ELF::EM_ARM:
      return "armv7-unknown-linux-gnueabihf";
  }
  return absl::InvalidArgumentError(absl::StrCat("link: the object file is for machine ",
                                                 header.e_machine,
                                                 " of ELF, and not for x86-64, aarch64 or ARMv7"));
}

absl::StatusOr<std::string> LinkSharedObject(absl::string_view object, const LinkOptions& options) {
  return LinkSharedObject(absl::Span<const absl::string_view>(&object, 1), options);
}

}  // namespace hone::builder
