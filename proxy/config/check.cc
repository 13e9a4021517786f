// One function per rule, each with its own message: the order of the checks, and those of the whole program.
#include "proxy/config/check.h"

#include <sys/stat.h>

#include "proxy/config/check_rules.h"
#include "proxy/config/text.h"
#include "proxy/config/text_format.h"

namespace carpool::proxy::config {
namespace {

class ProgramChecks final : private CheckRules {
 public:
  ProgramChecks(Reading& reading, const Places& places, const std::string& file) : CheckRules(reading, places, file) {}

  void run() {
    idle_fits_the_total();
    origins_fit_the_total();
    ranges_are_in_order();
    watermarks_are_in_order();
    log_has_one_target();
    syslog_is_there();
  }

 private:
  void idle_fits_the_total() {
    std::uint64_t sum = config_.origins.empty() ? config_.pool.min_idle : 0;
    bool invalid = places_.invalid("pool.min_idle") || places_.invalid("pool.total.max_connections");
    for (std::size_t i = 0; i < config_.origins.size(); ++i) {
      sum += config_.origins[i].pool.min_idle;
      invalid |= places_.invalid(item_key("origin", i) + ".pool.min_idle");
    }
    const std::uint32_t most = config_.pool_total.max_connections;
    if (invalid || sum <= most) return;
    error("pool.total.max_connections", "is " + std::to_string(most) +
                                            ", less than the sum of min_idle over all origins (" + std::to_string(sum) +
                                            "), expected at least that");
  }

  void origins_fit_the_total() {
    const std::size_t origins = config_.origins.size(), most = config_.pool_total.max_origins;
    if (places_.invalid("pool.total.max_origins") || origins <= most) return;
    warning("pool.total.max_origins", "is " + std::to_string(most) + ", less than the number of [[origin]] (" +
                                          std::to_string(origins) +
                                          "), each of which has a pool nevertheless: any other origin gets 503");
  }

  void ranges_are_in_order() {
    const bool invalid = places_.invalid("dns.min_ttl") || places_.invalid("dns.max_ttl");
    if (!invalid && config_.dns.min_ttl > config_.dns.max_ttl) {
      error(places_.given("dns.min_ttl") ? "dns.min_ttl" : "dns.max_ttl",
            "dns.min_ttl = " + in_quotes(duration_text(config_.dns.min_ttl)) + " is more than dns.max_ttl = " +
                in_quotes(duration_text(config_.dns.max_ttl)) + ", expected at most that");
    }
    at_most("threads.min", config_.threads.min, "threads.max", config_.threads.max);
  }

  void watermarks_are_in_order() {
    const Overload& marks = config_.overload;
    const auto ordered = [this](const char* low, std::uint32_t a, const char* high, std::uint32_t b) {
      if (a != 0 && b != 0) at_most(std::string("overload.") + low, a, std::string("overload.") + high, b);
    };
    ordered("stop_keep_alive", marks.stop_keep_alive, "refuse_clients", marks.refuse_clients);
    ordered("refuse_clients", marks.refuse_clients, "close_idle", marks.close_idle);
  }

  void log_has_one_target() {
    const Log& log = config_.log;
    if (!log.file.empty() && !log.syslog.empty())
      error("log.syslog", "is set beside log.file, expected only one of them");
    if (!log.file.empty() && log.file == log.access_file) {
      error("log.access_file", in_quotes(log.file) + " is also log.file (" + line_of("log.file") +
                                   "), expected a file of its own, or none");
    }
  }

  // No error: a start fails without the socket, but a reload must not fail while the daemon restarts.
  void syslog_is_there() {
    const std::string key = "log.syslog", &address = config_.log.syslog;
    struct stat status {};
    if (address.empty() || places_.invalid(key)) return;
    if (stat(address.substr(address.find(':') + 1).c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) return;
    warning(key,
            in_quotes(address) + " is not a socket, so a start would fail, expected the socket of a running daemon");
  }
};

}  // namespace

void check(Reading& reading, const Places& places, const std::string& file) {
  check_servers(reading, places, file);
  check_origins(reading, places, file);
  ProgramChecks(reading, places, file).run();
}

}  // namespace carpool::proxy::config
