#include <algorithm>
#include <utility>

#include "server/store/retention.h"

namespace hone::store {
namespace {

constexpr size_t kKeptConfirmed = 4;
constexpr size_t kKeptDefaults = 4;

// Mixes the bits of an id. Records with the smallest results are a sample that is even, and in
// which a record stays until one with a smaller result arrives.
uint64_t Mix(uint64_t id) {
  id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9;
  id = (id ^ (id >> 27)) * 0x94d049bb133111eb;
  return id ^ (id >> 31);
}

// Marks the first `count` of the entries in the order of `key` as kept.
template <typename Key>
void KeepFirst(std::vector<RecordEntry*> entries, size_t count, Key key) {
  const auto before = [&](const RecordEntry* a, const RecordEntry* b) { return key(*a) < key(*b); };
  if (entries.size() > count) {
    std::nth_element(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(count),
                     entries.end(), before);
    entries.resize(count);
  }
  for (RecordEntry* const entry : entries) entry->is_kept = true;
}

}  // namespace

void KeepOfTask(std::vector<RecordEntry>& entries, const CompactOptions& options) {
  const auto those = [&](auto condition) {
    std::vector<RecordEntry*> found;
    for (RecordEntry& entry : entries) {
      if (condition(entry)) found.push_back(&entry);
    }
    return found;
  };
  const auto latency = [](const RecordEntry& entry) {
    return std::pair(entry.latency_ns, entry.id);
  };
  KeepFirst(those([](const RecordEntry& entry) { return entry.is_good && entry.is_confirmed; }),
            kKeptConfirmed, latency);
  KeepFirst(those([](const RecordEntry& entry) {
              return entry.is_good && entry.is_confirmed && entry.is_default;
            }),
            kKeptDefaults, [](const RecordEntry& entry) { return -entry.id; });
  KeepFirst(those([](const RecordEntry& entry) { return entry.is_good; }),
            static_cast<size_t>(options.keep_best), latency);
  KeepFirst(those([](const RecordEntry& entry) { return !entry.is_quarantined && !entry.is_kept; }),
            static_cast<size_t>(options.keep_sample),
            [](const RecordEntry& entry) { return Mix(static_cast<uint64_t>(entry.id)); });
}

}  // namespace hone::store
