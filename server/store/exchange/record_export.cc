#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/exchange/exchange.h"

namespace hone::store {
namespace {

constexpr int kPage = 200;

}  // namespace

RecordExport::RecordExport(Store* store, RecordQuery query)
    : store_(store), query_(std::move(query)) {
  query_.page_size = kPage;
  query_.after_id = query_.before_id = 0;
  query_.newest_first = false;
}

absl::StatusOr<bool> RecordExport::AddText(const std::string& digest, std::string& lines) {
  if (const auto known = texts_.find(digest); known != texts_.end()) return known->second;
  const absl::StatusOr<std::string> text = store_->GetText(digest);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  texts_[digest] = text.ok();
  if (!text.ok()) return false;
  absl::StrAppend(&lines, TextLine(digest, *text));
  ++text_lines_;
  return true;
}

absl::StatusOr<std::string> RecordExport::Next() {
  if (ended_) return std::string();
  std::string lines;
  if (!begun_) {
    HONE_ASSIGN_OR_RETURN(const std::string identity, store_->Identity());
    lines = HeaderLine(identity);
    begun_ = true;
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, store_->Query(query_));
  for (const record::Record& record : page) {
    query_.after_id = record.id;
    HONE_ASSIGN_OR_RETURN(const bool workload, AddText(record.workload_digest, lines));
    HONE_ASSIGN_OR_RETURN(const bool space, AddText(record.candidate.space_digest, lines));
    if (!workload || !space) {
      ++left_out_;  // it could not be replayed
      continue;
    }
    absl::StrAppend(&lines, RecordLine(record));
    ++records_;
  }
  if (page.size() < static_cast<size_t>(kPage)) {
    absl::StrAppend(&lines, EndLine(text_lines_, records_, left_out_));
    ended_ = true;
  }
  return lines;
}

}  // namespace hone::store
