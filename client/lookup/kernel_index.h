#ifndef HONE_CLIENT_LOOKUP_KERNEL_INDEX_H_
#define HONE_CLIENT_LOOKUP_KERNEL_INDEX_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// The index of a kernel folder, which `hone export` writes and libhone_lookup reads. Like the rest
// of this folder, it uses only the standard library. README.md describes the format.
namespace hone::lookup {

// The paths inside a folder that `hone export -o` was given.
std::string IndexPath(const std::string& folder);
std::string SharedObjectPath(const std::string& folder, const std::string& kernel);

enum class Role { kInput, kConstant, kOutput };

struct Buffer {
  Role role = Role::kInput;
  std::string name;
  std::string dtype;  // "f32"
  int64_t bytes = 0;
  std::vector<int64_t> shape;
};

struct Kernel {
  std::string checksum;            // of the shared object, whose file is named after it
  std::vector<std::string> names;  // canonical words of the workload, or names that the user chose
  std::string workload;            // digest, 32 hex digits
  std::string target;              // key
  std::string arch;                // of the target
  std::vector<std::string> features;  // CPU features of the target
  double tolerance = 0;
  double latency_ns = 0;
  double gflops = 0;
  std::vector<Buffer> buffers;  // inputs first
};

// A key of an operator that may be left out.
struct DefaultKey {
  std::string name;
  std::string value;  // its default: a value, or "@KEY" for the value of another key; "": none
  // Whether a workload depends on the key only through other keys, which take its value.
  bool only_default = false;
};
// The keys of an operator that may be left out, in the order in which they get their values.
using Defaults = std::vector<DefaultKey>;

struct Index {
  std::map<std::string, Defaults> defaults;  // by operator
  std::vector<Kernel> kernels;
};

std::string Print(const Index& index);
// Returns false if the text is not an index, has another version, is truncated or damaged. `error`
// then says which.
bool Parse(const std::string& text, Index& index, std::string& error);

// Returns the canonical words of a workload, which are the same for equal workloads: with defaults,
// sorted by key, and without the keys that are only defaults of others. A single word stays as it
// is. "": a word is not of the form key=value, a key is given twice, or there are no words.
std::string Canonical(const std::string& words, const std::map<std::string, Defaults>& defaults);

// Canonical words without one key.
struct WordsWithoutKey {
  std::string words;
  int64_t value = 0;  // of the key
};
// Returns false if the words have no such key, or its value is not a natural number.
bool RemoveKey(const std::string& canonical, const std::string& key, WordsWithoutKey& rest);

// Whether a word has the form of a workload's digest.
bool IsDigest(const std::string& word);

// 16 hex digits (64-bit FNV-1a). It detects damage, not manipulation.
std::string Checksum(const std::string& bytes);

// The whole content of a regular file. Returns false if it cannot be read.
bool ReadFile(const std::string& path, std::string& content);

}  // namespace hone::lookup

#endif  // HONE_CLIENT_LOOKUP_KERNEL_INDEX_H_
