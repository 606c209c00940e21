#include "client/network/export/program_object.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/network/runtime/hone_program.h"

namespace hone::network {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
constexpr uint32_t kAddress = R_X86_64_64;
#else
constexpr Elf64_Half kMachine = EM_AARCH64;
constexpr uint32_t kAddress = R_AARCH64_ABS64;
#endif

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

}  // namespace

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

}  // namespace hone::network
