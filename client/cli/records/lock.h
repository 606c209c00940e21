#ifndef HONE_CLIENT_CLI_RECORDS_LOCK_H_
#define HONE_CLIENT_CLI_RECORDS_LOCK_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/command.h"
#include "client/cli/workload_argument.h"
#include "client/connection/api.h"
#include "common/record/record.h"

namespace hone::cli {

class Session;

// The kernel that was chosen for a workload on a target.
struct LockedKernel {
  std::string workload;   // digest
  std::string signature;  // for people: "matmul(f32[8, 8], f32[8, 8])"
  std::string target;     // key
  double tolerance = 0;
  std::string trace;             // digest of the text
  int64_t record = 0;            // number in the store of the server
  int64_t measured_unix_ms = 0;  // when the record was made
  double latency_ns = 0;         // for people
  int kernel_abi = 0;            // of the programs (target::kKernelAbiVersion)
};

// A lock file: the chosen kernels of operators and networks, perhaps for several targets. It is
// JSON, which may be under version control.
struct KernelLock {
  std::string path;
  std::vector<LockedKernel> kernels;
};

// Adds --locked to a command. It is for commands that look up bests with FindBest and VisitBests.
void AddLocked(Command& command, Globals& globals, std::initializer_list<OptionRule> rules = {});

// Convert the kernels to and from the text of a lock file. InvalidArgument: the text is malformed
// or of another version of the format.
std::string LockToText(const std::vector<LockedKernel>& kernels);
absl::StatusOr<std::vector<LockedKernel>> ParseLock(absl::string_view text);

// NotFound: the file does not exist. InvalidArgument: as for ParseLock; the message names the file.
absl::StatusOr<KernelLock> ReadLock(const std::string& path);

// Adds a kernel. Returns the one that it replaces, of the same workload, target and tolerance.
std::optional<LockedKernel> AddKernel(const LockedKernel& kernel,
                                      std::vector<LockedKernel>& kernels);

// A best as a lock file names it.
LockedKernel LockedKernelOf(const WorkloadArgument& argument, const v1::Best& best);

// Finds the kernel of a workload. InvalidArgument: the file has none for this workload, target and
// tolerance, or it is of another version of the kernel ABI; the message says which.
absl::StatusOr<LockedKernel> FindLocked(absl::Span<const LockedKernel> kernels,
                                        absl::string_view workload, absl::string_view target,
                                        double tolerance);

// Says how a record of the store differs from the locked one; "" if it does not. `record`: the one
// with the locked number; nullopt: there is none. `trace`: the digest of its schedule.
std::string DriftOf(const LockedKernel& locked, const std::optional<record::Record>& record,
                    absl::string_view trace);

// Returns the locked kernel of each workload on a target, whether it is the present best or not.
// DriftError: the server does not have all of them; the message says why. Other errors as for
// client::Connection::LookupBests, ListRecords and Artifact.
absl::StatusOr<std::vector<v1::Best>> LockedBests(Session& session, const KernelLock& lock,
                                                  absl::Span<const WorkloadArgument> list,
                                                  const std::string& target, double tolerance);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RECORDS_LOCK_H_
