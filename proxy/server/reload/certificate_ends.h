// CertificateEnds: the expiry of the certificates that the configuration names, for the metrics. The files are read
// with the configuration, not at each scrape.
#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "metrics/sample.h"
#include "proxy/config/config.h"

namespace carpool::proxy {

class CertificateEnds {
 public:
  // Reads the certificates of the listeners, of the admin endpoint, of carpool as a client of origins, and of the
  // authority. Blocks.
  void read(const config::Config& config);
  std::vector<metrics::CertificateSample> sample() const;  // any thread

 private:
  mutable Mutex mutex_;
  std::vector<metrics::CertificateSample> ends_ GUARDED_BY(mutex_);
};

}  // namespace carpool::proxy
