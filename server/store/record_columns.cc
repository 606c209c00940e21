#include "server/store/record_columns.h"

#include "absl/strings/str_replace.h"

namespace hone::store {
namespace {

class ColumnLister {
 public:
  void operator()(const record::Field&, const record::Environment& environment) {
    ColumnLister nested;
    VisitFields(environment, nested);
    columns_.environment = nested.columns_.insert;
    columns_.environment_count = nested.columns_.insert_count;
    absl::StrAppend(&columns_.select, ", ",
                    absl::StrReplaceAll(nested.columns_.select, {{"r.", "e."}}));
  }
  template <typename T>
  void operator()(const record::Field& field, const T& value) {
    if constexpr (requires { VisitFields(value, *this); }) {
      prefix_ = field.column_name();
      VisitFields(value, *this);
      prefix_ = "";
      return;
    }
    const std::string name = absl::StrCat(prefix_, field.column_name());
    const auto add = [](std::string& list, absl::string_view column) {
      absl::StrAppend(&list, list.empty() ? "" : ", ", column);
    };
    add(columns_.select, absl::StrCat("r.", name));
    if (field.by_store) return;
    add(columns_.insert, name);
    ++columns_.insert_count;
  }
  const RecordColumns& columns() const { return columns_; }

 private:
  RecordColumns columns_;
  std::string prefix_;
};

}  // namespace

const RecordColumns& Columns() {
  static const auto* const columns = [] {
    const record::Record record;
    ColumnLister lister;
    VisitFields(record, lister);
    return new RecordColumns(lister.columns());
  }();
  return *columns;
}

}  // namespace hone::store
