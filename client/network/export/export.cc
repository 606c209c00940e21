#include "client/network/export/export.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/connection/program_call.h"
#include "client/network/export/c_text.h"
#include "client/network/export/embedded_files.h"
#include "client/network/export/kernel_object.h"
#include "client/network/export/network_header.h"
#include "client/network/plan/plan.h"
#include "client/network/plan/weights_file.h"
#include "client/network/runtime/hone_program.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::network {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
constexpr uint32_t kAddress = R_X86_64_64;
#else
constexpr Elf64_Half kMachine = EM_AARCH64;
constexpr uint32_t kAddress = R_AARCH64_ABS64;
#endif

// Whether NAME.h, NAME.py or a type of this name would not do: keywords of C and C++, headers of
// the C library, modules that the Python file needs, and Hone's own.
bool IsReserved(absl::string_view name) {
  static constexpr absl::string_view kReserved[] = {
      "alloca",   "byteswap",  "concept",   "constexpr", "copy",      "ctypes",   "dirent",
      "dlfcn",    "elf",       "endian",    "fcntl",     "features",  "inttypes", "link",
      "main",     "malloc",    "memory",    "numpy",     "poll",      "pthread",  "sched",
      "search",   "semaphore", "stdatomic", "strings",   "tgmath",    "threads",  "typeof",
      "uchar",    "unistd",    "wctype",    "alignas",   "alignof",   "and",      "asm",
      "assert",   "auto",      "bool",      "break",     "case",      "catch",    "char",
      "class",    "complex",   "const",     "continue",  "ctype",     "decltype", "default",
      "delete",   "do",        "double",    "else",      "enum",      "errno",    "explicit",
      "export",   "extern",    "false",     "fenv",      "float",     "for",      "friend",
      "goto",     "hone",      "if",        "inline",    "int",       "limits",   "locale",
      "long",     "math",      "mutable",   "namespace", "new",       "noexcept", "not",
      "nullptr",  "operator",  "or",        "private",   "protected", "public",   "register",
      "requires", "restrict",  "return",    "setjmp",    "short",     "signal",   "signed",
      "sizeof",   "static",    "stdarg",    "stdbool",   "stddef",    "stdint",   "stdio",
      "stdlib",   "string",    "struct",    "switch",    "template",  "this",     "throw",
      "time",     "true",      "try",       "typedef",   "typename",  "union",    "unsigned",
      "using",    "virtual",   "void",      "volatile",  "wchar",     "while",    "xor"};
  return absl::c_linear_search(kReserved, name);
}

// The functions of hone_network_kernel, in the order of its members.
constexpr absl::string_view kFunctions[] = {"_abi", "_workspace_bytes", "_packed_bytes", "_run"};

enum Section { kNull, kPlan, kProgram, kRelocations, kSymbols, kStrings, kStack, kSections };

constexpr const char* kSectionNames[kSections] = {
    "", ".rodata", ".data.rel.ro", ".rela.data.rel.ro", ".symtab", ".strtab", ".note.GNU-stack"};

// Symbols of the object. The first ones are local.
enum Symbol { kNoSymbol, kPlanSymbol, kProgramSymbol, kLocalSymbols };

template <typename T>
void AppendBytes(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

uint32_t AddString(std::string& strings, absl::string_view text) {
  const auto offset = static_cast<uint32_t>(strings.size());
  absl::StrAppend(&strings, text, absl::string_view("\0", 1));
  return offset;
}

struct Content {
  std::string program;      // hone_network_program, then the kernels
  std::string relocations;  // of the program
  std::string symbols;
  std::string strings = std::string(1, '\0');

  void AddSymbol(uint32_t name, unsigned char binding, unsigned char type, Elf64_Half section,
                 uint64_t size) {
    Elf64_Sym symbol = {};
    symbol.st_name = name;
    if (binding == STB_GLOBAL) symbol.st_other = STV_HIDDEN;
    symbol.st_info = ELF64_ST_INFO(binding, type);
    symbol.st_shndx = section;
    symbol.st_size = size;
    AppendBytes(symbols, symbol);
  }
  // Appends an address to the program.
  void AddAddress(uint64_t symbol, int64_t addend) {
    AppendBytes(relocations, Elf64_Rela{.r_offset = program.size(),
                                        .r_info = ELF64_R_INFO(symbol, kAddress),
                                        .r_addend = addend});
    AppendBytes(program, uint64_t{0});
  }
};

Content MakeContent(absl::string_view name, absl::string_view plan, absl::string_view backend,
                    const std::vector<std::string>& kernel_prefixes) {
  Content content;
  content.AddAddress(kPlanSymbol, 0);
  AppendBytes(content.program, static_cast<uint64_t>(plan.size()));
  content.AddAddress(kProgramSymbol, sizeof(hone_network_program));
  AppendBytes(content.program, static_cast<uint64_t>(kernel_prefixes.size()));
  content.AddAddress(kLocalSymbols + 1, 0);
  content.AddSymbol(0, STB_LOCAL, STT_NOTYPE, SHN_UNDEF, 0);
  content.AddSymbol(0, STB_LOCAL, STT_SECTION, kPlan, 0);
  content.AddSymbol(0, STB_LOCAL, STT_SECTION, kProgram, 0);
  content.AddSymbol(AddString(content.strings, name), STB_GLOBAL, STT_OBJECT, kProgram,
                    sizeof(hone_network_program));
  content.AddSymbol(AddString(content.strings, backend), STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
  uint64_t symbol = kLocalSymbols + 2;
  for (const std::string& prefix : kernel_prefixes) {
    for (const absl::string_view function : kFunctions) {
      const uint32_t function_name = AddString(content.strings, absl::StrCat(prefix, function));
      content.AddSymbol(function_name, STB_GLOBAL, STT_NOTYPE, SHN_UNDEF, 0);
      content.AddAddress(symbol++, 0);
    }
  }
  return content;
}

// Makes an object file, without a compiler, that defines the program of a network
// (runtime/hone_program.h) as the symbol `name`: the bytes of its plan, and a table with the
// functions PREFIX_abi, PREFIX_workspace_bytes, PREFIX_packed_bytes and PREFIX_run of each kernel
// of a CPU. Other objects define these and the symbol `backend`. The object is for this machine's
// architecture.
std::string ProgramObject(absl::string_view name, absl::string_view plan, absl::string_view backend,
                          const std::vector<std::string>& kernel_prefixes) {
  static_assert(sizeof(hone_network_program) == 5 * sizeof(uint64_t));
  static_assert(sizeof(hone_network_kernel) == std::size(kFunctions) * sizeof(uint64_t));
  Content content = MakeContent(name, plan, backend, kernel_prefixes);
  Elf64_Shdr sections[kSections] = {};
  for (int s = 1; s < kSections; ++s) {
    sections[s].sh_name = AddString(content.strings, kSectionNames[s]);
    sections[s].sh_addralign = 8;
  }
  std::string file(sizeof(Elf64_Ehdr), '\0');
  const auto place = [&](Section s, uint32_t type, uint64_t flags, absl::string_view bytes) {
    sections[s].sh_type = type;
    sections[s].sh_flags = flags;
    sections[s].sh_offset = file.size();
    sections[s].sh_size = bytes.size();
    absl::StrAppend(&file, bytes);
    file.resize((file.size() + 7) / 8 * 8);
  };
  place(kPlan, SHT_PROGBITS, SHF_ALLOC, plan);
  place(kProgram, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, content.program);
  place(kRelocations, SHT_RELA, SHF_INFO_LINK, content.relocations);
  place(kSymbols, SHT_SYMTAB, 0, content.symbols);
  place(kStrings, SHT_STRTAB, 0, content.strings);
  place(kStack, SHT_PROGBITS, 0, "");
  sections[kRelocations].sh_entsize = sizeof(Elf64_Rela);
  sections[kRelocations].sh_link = kSymbols;
  sections[kRelocations].sh_info = kProgram;
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  sections[kSymbols].sh_link = kStrings;
  sections[kSymbols].sh_info = kLocalSymbols;

  Elf64_Ehdr header = {};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = kMachine;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shoff = file.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kStrings;
  file.replace(0, sizeof header, reinterpret_cast<const char*>(&header), sizeof header);
  for (const Elf64_Shdr& section : sections) AppendBytes(file, section);
  return file;
}

// Prefix of all functions of the runtime.
constexpr char kRuntimePrefix[] = "hone_network_";

// What runs the kernels: "cpu", "cuda" or "opencl".
absl::string_view BackendName(absl::Span<const NetworkKernel> kernels) {
  return target::KindName(kernels.empty() ? target::Kind::kCpu : kernels[0].target.kind);
}

std::string KernelPrefix(size_t task) { return absl::StrCat("hone_job", task); }

// Links the kernels, the runtime and the plan to a shared object. `folder` is for object files.
absl::StatusOr<std::string> Link(const Plan& plan, absl::Span<const NetworkKernel> kernels,
                                 const ExportOptions& options, const std::string& folder) {
  std::vector<std::string> words = {"link", "--visible", absl::StrCat(options.name, "_")};
  const auto add = [&](absl::string_view name, absl::string_view object) {
    words.push_back(absl::StrCat(folder, "/", name));
    return WriteFileAtomically(words.back(), object, Durability::kProcess);
  };
  std::vector<std::string> prefixes;
  for (size_t t = 0; t < kernels.size(); ++t) {
    if (plan.is_gpu) break;  // the plan has the code
    if (kernels[t].object.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the object file of the kernel of ", plan.kernels[t].name, " is missing"));
    }
    prefixes.push_back(KernelPrefix(t));
    HONE_ASSIGN_OR_RETURN(const std::string object,
                          client::RenameFunctions(kernels[t].object, prefixes.back()));
    HONE_RETURN_IF_ERROR(add(absl::StrCat(prefixes.back(), ".o"), object));
  }
  const auto add_renamed = [&](absl::string_view name, absl::string_view object) -> absl::Status {
    HONE_ASSIGN_OR_RETURN(
        const std::string renamed,
        client::RenameSymbols(object, kRuntimePrefix, absl::StrCat(options.name, "_")));
    return add(name, renamed);
  };
  for (const EmbeddedFile& file : EmbeddedFiles()) {
    if (absl::EndsWith(file.name, ".o")) {
      HONE_RETURN_IF_ERROR(add_renamed(file.name, file.content));
    }
  }
  HONE_RETURN_IF_ERROR(add_renamed(
      "program.o",
      ProgramObject(absl::StrCat(kRuntimePrefix, "embedded"), plan.Encode(),
                    absl::StrCat("hone_", BackendName(kernels), "_backend"), prefixes)));
  return client::RunBuilder(words, "", options.program_dir);
}

}  // namespace

client::ExportFacts FactsOf(const ExportOptions& options, absl::Span<const NetworkOfSize> sizes) {
  client::ExportFacts facts = options.facts;
  facts.name = options.name;
  facts.kind = "network";
  facts.kernels = facts.measured = 0;
  for (const NetworkOfSize& size : sizes) {
    facts.kernels += static_cast<int64_t>(size.kernels.size());
    facts.measured += absl::c_count_if(
        size.kernels, [](const NetworkKernel& kernel) { return kernel.latency_ns > 0; });
  }
  return facts;
}

absl::Status CheckExportName(const std::string& name) {
  if (IsReserved(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' means something else in C, C++ or Python programs, which read ",
                     name, ".h or ", name, ".py; give the network another name with --name"));
  }
  if (name != client::CIdentifier(name) || absl::StartsWith(name, "hone_")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' cannot be the prefix of functions; a name has letters, digits and '_', and "
                     "does not begin with hone_"));
  }
  return absl::OkStatus();
}

std::string TailFile(const std::string& name, int64_t size) {
  return size == 0 ? name + ".tail.onnx" : absl::StrCat(name, ".tail.", size, ".onnx");
}

std::vector<std::string> FilesOfNetwork(const ExportOptions& options) {
  const std::string& name = options.name;
  std::vector<std::string> files = {name + ".weights", absl::StrCat("lib", name, ".so"),
                                    name + ".h", name + ".hpp", name + ".py"};
  for (const auto& [size, model] : options.tails) files.push_back(TailFile(name, size));
  return files;
}

absl::StatusOr<std::vector<ExportedFile>> ExportNetwork(const graph::Graph& graph,
                                                        const graph::Partition& partition,
                                                        absl::Span<const NetworkKernel> kernels,
                                                        const ExportOptions& options) {
  return ExportNetwork("", {{.graph = &graph, .partition = &partition, .kernels = kernels}},
                       options);
}

absl::StatusOr<std::vector<ExportedFile>> ExportNetwork(const std::string& dimension,
                                                        absl::Span<const NetworkOfSize> sizes,
                                                        const ExportOptions& options) {
  const std::string& name = options.name;
  HONE_RETURN_IF_ERROR(CheckExportName(name));
  HONE_ASSIGN_OR_RETURN(JoinedNetwork joined, JoinPlans(dimension, sizes));
  const Plan& plan = joined.planned.plan;
  client::ExportFolder folder(options.folder, options.overwrite);
  HONE_ASSIGN_OR_RETURN(const std::string scratch, folder.Scratch());
  HONE_RETURN_IF_ERROR(WriteWeights(joined.graphs, joined.kernels,
                                    absl::StrCat(scratch, "/", name, ".weights"), joined.planned));
  HONE_ASSIGN_OR_RETURN(const std::string shared_object,
                        Link(plan, joined.kernels, options, scratch));
  std::vector<std::pair<int64_t, std::string>> tails;
  for (const auto& [size, model] : options.tails) tails.emplace_back(size, TailFile(name, size));
  std::vector<std::pair<std::string, std::string>> contents = {
      {absl::StrCat("lib", name, ".so"), shared_object},  // Python would import NAME.so itself
      {absl::StrCat(name, ".h"), NetworkHeader(name, plan)},
      {absl::StrCat(name, ".hpp"), CppHeader(name)},
      {absl::StrCat(name, ".py"), PythonModule(name, plan, tails)}};
  for (const auto& [size, model] : options.tails)
    contents.emplace_back(TailFile(name, size), model);
  for (const auto& [file, content] : contents) HONE_RETURN_IF_ERROR(folder.Write(file, content));
  HONE_RETURN_IF_ERROR(folder.Add(FactsOf(options, sizes), FilesOfNetwork(options)));
  HONE_ASSIGN_OR_RETURN(const auto files, folder.Commit());
  return files[0];
}

}  // namespace hone::network
