#ifndef HONE_TESTS_BENCH_LOAD_SCRAPE_H_
#define HONE_TESTS_BENCH_LOAD_SCRAPE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::load {

// What a server's metrics said at one moment.
class Scrape {
 public:
  // Asks a server on this machine. Unavailable: it does not answer.
  static absl::StatusOr<Scrape> Of(int port);
  // From Prometheus' text form.
  static Scrape Parse(absl::string_view text);

  // A number by its name with labels, as it stands in the text; 0 when it is not there.
  double operator[](const std::string& name) const;
  // The sum over every set of labels.
  double Sum(const std::string& name) const;

  // What a histogram counted since an earlier scrape: the value that the share `q` does not exceed,
  // interpolated in its class, and infinity above the last one. 0: nothing.
  double Quantile(const Scrape& earlier, const std::string& histogram, double q) const;

 private:
  std::map<std::string, double> values_;
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SCRAPE_H_
