// Checks the query plans that SQLite chooses: changes of the schema or of a statement must not turn
// a look-up into a scan unnoticed.
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/sqlite/sqlite_store.h"
#include "server/store/tables.h"
#include "tests/status.h"

namespace hone::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An empty store. There are thousands of plans, and a connection keeps their statements.
SqliteConnection& EmptyStore() {
  constexpr int kPlans = 500;
  static auto& store = *new std::unique_ptr<SqliteConnection>();
  static int plans = 0;
  if (plans++ % kPlans == 0) {
    store = SqliteConnection::OpenInMemory().value();
    EXPECT_THAT(Migrate(*store, SqliteMigrations()), IsOk());
  }
  return *store;
}

// The steps of the plan, one per line.
std::string Plan(const std::string& sql) {
  absl::StatusOr<Statement> statement =
      EmptyStore().Prepare(absl::StrCat("EXPLAIN QUERY PLAN ", sql));
  EXPECT_THAT(statement, IsOk());
  std::string plan;
  if (!statement.ok()) return plan;
  while (statement->Step().value()) {
    for (int i = 0; i < 3; ++i) statement->Int64();
    absl::StrAppend(&plan, statement->Text(), "\n");
  }
  return plan;
}

TEST(QueryPlan, BestOfAnyPolicyNeedsNoSorting) {
  EXPECT_THAT(Plan(LookupBestSql(true)),
              AllOf(HasSubstr("SEARCH b USING INDEX best_lookup"
                              " (workload=? AND target=? AND tolerance=?)\n"),
                    HasSubstr("SEARCH r USING INTEGER PRIMARY KEY"),
                    HasSubstr("SEARCH e USING INTEGER PRIMARY KEY"),
                    HasSubstr("SEARCH w USING INDEX"), HasSubstr("SEARCH s USING INDEX"),
                    Not(HasSubstr("SCAN")), Not(HasSubstr("TEMP B-TREE"))));
}

TEST(QueryPlan, BestOfOnePolicyReadsOneRow) {
  EXPECT_THAT(Plan(LookupBestSql(false)),
              AllOf(HasSubstr("SEARCH b USING INDEX best_is_one"
                              " (workload=? AND target=? AND tolerance=? AND policy=?)\n"),
                    Not(HasSubstr("SCAN")), Not(HasSubstr("TEMP B-TREE"))));
}

TEST(QueryPlan, NewestModelUsesAnIndex) {
  EXPECT_THAT(Plan(SelectModelSql()),
              AllOf(HasSubstr("SEARCH model USING INDEX model_by_key"
                              " (name=? AND feature_set=? AND target=? AND scope=?)\n"),
                    Not(HasSubstr("SCAN")), Not(HasSubstr("TEMP B-TREE"))));
}

TEST(QueryPlan, FiltersUseIndexesWithoutSorting) {
  const auto uses = [](const std::string& index) {
    return AllOf(HasSubstr("SEARCH r USING " + index), Not(HasSubstr("TEMP B-TREE")));
  };
  const std::string by_workload = "INDEX record_by_workload (workload=? AND rowid>?)";
  const std::string by_id = "INTEGER PRIMARY KEY (rowid>?)";
  EXPECT_THAT(Plan(QuerySql({})), uses(by_id));
  EXPECT_THAT(Plan(QuerySql({.workload_digest = "w"})), uses(by_workload));
  EXPECT_THAT(Plan(QuerySql({.op = "o"})), uses("INDEX record_by_op (op=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.target = "t"})),
              uses("INDEX record_by_target (target=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.workload_digest = "w", .target = "t", .op = "o"})),
              uses(by_workload));
  EXPECT_THAT(Plan(QuerySql({.best_only = true})), uses("INTEGER PRIMARY KEY (rowid=?)"));
  EXPECT_THAT(Plan(QuerySql({.job_id = "j"})), uses("INDEX record_by_job (job=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.proposer = "p"})),
              uses("INDEX record_by_proposer (proposer=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.job_id = "j", .proposed = true, .proposer = "p"})),
              uses("INDEX record_by_job (job=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.outcome = "crash"})),
              uses("INDEX record_failed (outcome=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.outcome = "ok"})), uses(by_id));
  EXPECT_THAT(Plan(QuerySql({.quarantine = QuarantineFilter::kOnly})),
              uses("INDEX record_quarantined (quarantined=? AND rowid>?)"));
  EXPECT_THAT(Plan(QuerySql({.since_unix_ms = 1})),
              AllOf(uses(by_id), HasSubstr("SEARCH record USING COVERING INDEX record_by_time"
                                           " (created_unix_ms>?)")));
  EXPECT_THAT(Plan(QuerySql({.until_unix_ms = 1})), uses(by_id));
}

TEST(QueryPlan, NoCombinationOfFiltersScansOrSorts) {
  for (int bits = 0; bits < 3 << 12; ++bits) {
    const auto has = [&](int bit) { return (bits >> bit & 1) != 0; };
    const RecordQuery query{.workload_digest = has(0) ? "w" : "",
                            .target = has(1) ? "t" : "",
                            .op = has(2) ? "o" : "",
                            .best_only = has(3),
                            .unpublished_best = has(9),
                            .since_unix_ms = has(4),
                            .newest_first = has(5),
                            .until_unix_ms = has(6),
                            .job_id = has(7) ? "j" : "",
                            .outcome = has(8) ? "crash" : "",
                            .quarantine = static_cast<QuarantineFilter>(bits >> 12),
                            .proposed = has(10),
                            .proposer = has(11) ? "p" : ""};
    const std::string plan = Plan(QuerySql(query));
    EXPECT_THAT(plan, Not(HasSubstr("TEMP B-TREE"))) << bits;
    EXPECT_THAT(plan, Not(HasSubstr("SCAN r"))) << bits;
  }
}

// Each order, its first page, the records that tie with the end of a page, and those behind them.
TEST(QueryPlan, OrdersUseTheirIndexesWithoutSorting) {
  struct Case {
    RecordQuery query;
    const char *index, *equal;
  };
  for (const auto& [asked, index, equal] :
       {Case{{.order = RecordOrder::kTime}, "record_by_time (created_unix_ms", ""},
        Case{{.order = RecordOrder::kOperator}, "record_by_op (op", ""},
        Case{{.order = RecordOrder::kWorkload}, "record_by_workload (workload", ""},
        Case{{.order = RecordOrder::kTarget}, "record_by_target (target", ""},
        Case{{.order = RecordOrder::kJob}, "record_by_job (job", ""},
        Case{{.order = RecordOrder::kLatency}, "record_by_latency (latency_ns", ""},
        Case{{.workload_digest = "w", .target = "t", .order = RecordOrder::kLatency},
             "record_by_task_latency (workload=? AND target=?",
             " AND latency_ns"}}) {
    for (const bool newest_first : {false, true}) {
      RecordQuery query = asked;
      query.newest_first = newest_first;
      const std::string beyond = newest_first ? "<?" : ">?";
      const std::string name(index, std::string(index).find(' '));
      EXPECT_THAT(
          Plan(OrderedSql(query, false)),
          AllOf(HasSubstr(absl::StrCat(" r USING INDEX ", name)), Not(HasSubstr("TEMP B-TREE"))));
      query.after = RecordPlace{.text = "x", .number = 1, .id = 1};
      EXPECT_THAT(Plan(OrderedSql(query, true)),
                  AllOf(HasSubstr(absl::StrCat("SEARCH r USING INDEX ", index, equal,
                                               "=? AND rowid", beyond, ")")),
                        Not(HasSubstr("TEMP B-TREE"))));
      EXPECT_THAT(Plan(OrderedSql(query, false)),
                  AllOf(HasSubstr(absl::StrCat("SEARCH r USING INDEX ", index, equal, beyond, ")")),
                        Not(HasSubstr("TEMP B-TREE"))));
    }
  }
  RecordQuery span{.since_unix_ms = 1, .until_unix_ms = 2, .order = RecordOrder::kTime};
  EXPECT_THAT(Plan(OrderedSql(span, false)),
              HasSubstr("record_by_time (created_unix_ms>? AND created_unix_ms<?)"));
  span.after = RecordPlace{.number = 1, .id = 1};
  EXPECT_THAT(Plan(OrderedSql(span, false)),
              HasSubstr("record_by_time (created_unix_ms>? AND created_unix_ms<?)"));
}

// Confirmed records may be a tenth of all: reading their whole index would take seconds.
TEST(QueryPlan, UnpublishedBestSeeksTaskByTask) {
  const auto seeks = [](const std::string& range) {
    return AllOf(HasSubstr("SEARCH n USING INDEX record_confirmed (" + range + ")\n"),
                 HasSubstr("SEARCH b USING COVERING INDEX best_lookup"
                           " (workload=? AND target=? AND tolerance=?)\n"),
                 HasSubstr("SEARCH r USING INTEGER PRIMARY KEY (rowid=?)"),
                 Not(HasSubstr("SCAN n")), Not(HasSubstr("SCAN c")));
  };
  const std::string any = "(target,workload,tolerance)>(?,?,?)";
  EXPECT_THAT(Plan(QuerySql({.unpublished_best = true})), seeks(any));
  EXPECT_THAT(Plan(QuerySql({.workload_digest = "w", .unpublished_best = true})), seeks(any));
  EXPECT_THAT(Plan(QuerySql({.target = "t", .unpublished_best = true})),
              seeks("target=? AND (workload,tolerance)>(?,?)"));
  EXPECT_THAT(
      Plan(QuerySql({.workload_digest = "w", .target = "t", .op = "o", .unpublished_best = true})),
      seeks("target=? AND workload=? AND tolerance>?"));
}

TEST(QueryPlan, ImportFindsDuplicatesByTime) {
  EXPECT_THAT(Plan(SameRecordSql()),
              HasSubstr("SEARCH record USING INDEX record_by_time (created_unix_ms=?)"));
}

TEST(QueryPlan, UnfinishedJobsUseTheirIndex) {
  EXPECT_THAT(Plan(UnfinishedJobsSql()),
              AllOf(HasSubstr("job USING INDEX job_unfinished"), Not(HasSubstr("TEMP B-TREE"))));
}

}  // namespace
}  // namespace hone::store
