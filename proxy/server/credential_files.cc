#include "proxy/server/credential_files.h"

#include <algorithm>
#include <chrono>

#include "metrics/registry.h"
#include "proxy/telemetry/log.h"
#include "proxy/upstream/origin/credentials.h"

namespace carpool::proxy {

namespace {
constexpr Duration kFileInterval = std::chrono::seconds(1);
}

void CredentialFiles::start(exec::Loop& loop, exec::Executor& background) {
  exec::PeriodicTask::Work& own = *this;
  round_ = std::make_unique<exec::PeriodicTask>(loop, background, own, kFileInterval);
}

Duration CredentialFiles::postpone() {
  const auto all = origins_.all_credentials();
  const bool any = std::any_of(all.begin(), all.end(), [](const auto& one) { return one->has_files(); });
  if (any) return Duration::zero();
  metrics_.set_stale_credentials(0);  // a reload may have removed the files of the last round
  return kFileInterval;
}

void CredentialFiles::work() {
  std::uint64_t stale = 0;
  for (Credentials* const credentials : origins_.all_credentials()) {
    for (const Credentials::FileEvent& event : credentials->check_files()) {
      metrics_.record_credential_file(event.fault.empty() ? metrics::CredentialFile::renewed
                                                          : metrics::CredentialFile::failed);
      if (event.fault.empty()) {
        log::info("credentials", "a file has a new value", {{"origin", credentials->label()}, {"field", event.name}});
        continue;
      }
      log::warn("credentials", "a file cannot be used; the last good value stays",
                {{"origin", credentials->label()}, {"field", event.name}, {"error", event.fault}});
    }
    stale += credentials->stale();
  }
  metrics_.set_stale_credentials(stale);
}

}  // namespace carpool::proxy
