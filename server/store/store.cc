#include "server/store/store.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/store/retention.h"
#include "server/store/tables.h"
#ifdef HONE_WITH_POSTGRES
#include "server/store/postgres/postgres_store.h"
#endif

namespace hone::store {
namespace {

bool IsPostgres(const std::string& place) {
  return absl::StartsWith(place, "postgres://") || absl::StartsWith(place, "postgresql://");
}

}  // namespace

absl::Status Store::WriteNow(const std::function<absl::Status(Connection&)>& work) {
  absl::Notification written;
  absl::Status result;
  Write([&work](Connection& c) { return work(c); },
        [&](absl::Status status) {
          result = std::move(status);
          written.Notify();
        },
        kRowBytes, WhenFull::kFail);
  written.WaitForNotification();
  return result;
}

absl::StatusOr<CompactReport> Store::Compact(const CompactOptions& options,
                                             const std::function<bool()>& cancelled) {
  const RetentionAccess access{
      .read =
          [this](const RetentionAccess::Work& work) {
            return Read([&](Connection& c) { return work(c); });
          },
      .write = [this](const RetentionAccess::Work& work) { return WriteNow(work); },
      .free_space = [&] { return FreeSpace(cancelled); },
      .cancelled = cancelled,
      .now_unix_ms = NowUnixMs()};
  return RemoveOldRows(access, options);
}

std::string StoreName(const std::string& place) {
  if (!IsPostgres(place)) return place;
  const std::string whole = place.substr(0, place.find('?'));  // a password may follow it
  const size_t begin = whole.find("://") + 3;
  const size_t at = whole.rfind('@');
  // A "?" in a password, which should be written as %3F, makes the end of the password unknown.
  if (at == std::string::npos && place.find('@') != std::string::npos) return "postgresql://…";
  if (at == std::string::npos || at < begin) return whole;
  const std::string user = whole.substr(begin, at - begin);
  return absl::StrCat(whole.substr(0, begin), user.substr(0, user.find(':')), whole.substr(at));
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const std::string& place) {
  if (!IsPostgres(place)) return OpenSqliteStore(place);
#ifdef HONE_WITH_POSTGRES
  return OpenPostgresStore(place);
#else
  return absl::UnimplementedError(
      "this hone-server was built without libpq: install libpq-dev and build it again, or keep the "
      "store in a file");
#endif
}

}  // namespace hone::store
