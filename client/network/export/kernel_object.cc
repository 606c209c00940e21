#include "client/network/export/kernel_object.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/target/kernel_abi.h"

namespace hone::client {
namespace {

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the kernel's object file ", what));
}

// Reads a struct at a checked offset, which need not be aligned.
template <typename T>
absl::StatusOr<T> Read(absl::string_view file, uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return Malformed("is truncated");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

template <typename T>
void Write(std::string& file, uint64_t offset, const T& value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
}

// The zero-terminated name at `offset` of a string table.
absl::StatusOr<absl::string_view> NameAt(absl::string_view strings, uint64_t offset) {
  const size_t end = offset < strings.size() ? strings.find('\0', offset) : absl::string_view::npos;
  if (end == absl::string_view::npos) return Malformed("names a symbol outside its string table");
  return strings.substr(offset, end - offset);
}

// The structures of ELF files of 64 and of 32 bits.
struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
  static constexpr unsigned char kClass = ELFCLASS64;
};
struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
  static constexpr unsigned char kClass = ELFCLASS32;
};

template <typename Elf>
absl::StatusOr<typename Elf::Header> FileHeader(absl::string_view object) {
  HONE_ASSIGN_OR_RETURN(const auto header, Read<typename Elf::Header>(object, 0));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != Elf::kClass || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_REL || header.e_shentsize != sizeof(typename Elf::Section)) {
    return Malformed("is not a relocatable ELF file");
  }
  if (header.e_shoff > object.size() ||
      (object.size() - header.e_shoff) / sizeof(typename Elf::Section) < header.e_shnum) {
    return Malformed("is truncated");
  }
  return header;
}

struct Renamed {
  std::string object;
  int defined = 0;  // symbols of this object that have another name
};

template <typename Elf>
absl::StatusOr<Renamed> RenameIn(absl::string_view object, absl::string_view old_prefix,
                                 absl::string_view new_prefix) {
  using Section = typename Elf::Section;
  using Symbol = typename Elf::Symbol;
  HONE_ASSIGN_OR_RETURN(const typename Elf::Header header, FileHeader<Elf>(object));
  const auto section_at = [&](uint64_t index) { return header.e_shoff + index * sizeof(Section); };
  uint64_t symbols_index = 0;
  Section symbols;
  for (uint64_t i = 1; i < header.e_shnum && symbols_index == 0; ++i) {
    HONE_ASSIGN_OR_RETURN(symbols, Read<Section>(object, section_at(i)));
    if (symbols.sh_type == SHT_SYMTAB) symbols_index = i;
  }
  if (symbols_index == 0 || symbols.sh_link >= header.e_shnum) return Malformed("has no symbols");
  HONE_ASSIGN_OR_RETURN(Section table, Read<Section>(object, section_at(symbols.sh_link)));
  if (table.sh_offset > object.size() || table.sh_size > object.size() - table.sh_offset) {
    return Malformed("is truncated");
  }

  // Append a copy of the string table, with the new names after the old ones, to the file.
  std::string strings(object.substr(table.sh_offset, table.sh_size));
  Renamed renamed{.object = std::string(object)};
  for (uint64_t at = 0; at + sizeof(Symbol) <= symbols.sh_size; at += sizeof(Symbol)) {
    const uint64_t offset = uint64_t{symbols.sh_offset} + at;
    HONE_ASSIGN_OR_RETURN(Symbol symbol, Read<Symbol>(object, offset));
    HONE_ASSIGN_OR_RETURN(absl::string_view name, NameAt(strings, symbol.st_name));
    if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL) continue;
    if (!absl::ConsumePrefix(&name, old_prefix)) continue;
    if (symbol.st_shndx != SHN_UNDEF) ++renamed.defined;
    const std::string new_name = absl::StrCat(new_prefix, name);
    symbol.st_name = static_cast<uint32_t>(strings.size());
    strings.append(new_name.c_str(), new_name.size() + 1);
    Write(renamed.object, offset, symbol);
  }
  table.sh_offset = renamed.object.size();
  table.sh_size = strings.size();
  Write(renamed.object, section_at(symbols.sh_link), table);
  renamed.object += strings;
  return renamed;
}

absl::StatusOr<Renamed> Rename(absl::string_view object, absl::string_view old_prefix,
                               absl::string_view new_prefix) {
  const bool is_32 = object.size() > EI_CLASS && object[EI_CLASS] == ELFCLASS32;
  return is_32 ? RenameIn<Elf32>(object, old_prefix, new_prefix)
               : RenameIn<Elf64>(object, old_prefix, new_prefix);
}

}  // namespace

absl::StatusOr<std::string> RenameFunctions(absl::string_view object, absl::string_view prefix) {
  HONE_ASSIGN_OR_RETURN(Renamed renamed,
                        Rename(object, target::kFunctionPrefix, absl::StrCat(prefix, "_")));
  if (renamed.defined == 0) return Malformed("contains no kernel function");
  return std::move(renamed.object);
}

absl::StatusOr<std::string> RenameSymbols(absl::string_view object, absl::string_view old_prefix,
                                          absl::string_view new_prefix) {
  HONE_ASSIGN_OR_RETURN(Renamed renamed, Rename(object, old_prefix, new_prefix));
  return std::move(renamed.object);
}

}  // namespace hone::client
