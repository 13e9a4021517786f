#include "proxy/commands/cli/top.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "proxy/commands/cli/pools_table.h"
#include "proxy/commands/cli/screen.h"
#include "proxy/config/options.h"

namespace carpool::proxy::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kBetween{1};

// PoolsView: the last response, and the rates since the one before.
class PoolsView {
 public:
  explicit PoolsView(const Instance& instance) : instance_(instance) { instance_.timeout_seconds = 2; }

  void poll() {
    const Result<Reply> reply = ask(instance_, "GET", "/pools");
    if (!reply) return lost(reply.fault().detail);
    const Result<Json> response = read_json<Json>(reply->body, kResponseBounds);
    if (reply->status >= 400) return lost(instance_.address + " answered with status " + std::to_string(reply->status));
    if (!response || !response->is_object()) return lost("no JSON in the response of " + instance_.address);
    try {
      update(*response);
    } catch (const Json::exception&) {  // a member does not have the type that carpool sends
      lost("the response of " + instance_.address + " is not from carpool");
    }
  }

  void update(const Json& response) {
    const SteadyClock::time_point now = SteadyClock::now();
    const double seconds = std::chrono::duration<double>(now - seen_at_).count();
    pools_ = response.value("pools", Json::array());
    std::map<std::string, double> borrows;
    for (Json& pool : pools_) {
      const std::string origin = pool.value("origin", "");
      const double count = borrows[origin] = pool.value("borrows", 0.0);
      const auto before = borrows_.find(origin);
      const bool known = before != borrows_.end() && before->second <= count && seconds > 0;
      pool["per_second"] = known ? Json((count - before->second) / seconds) : Json(nullptr);
    }
    pools_ = busiest_first(pools_);
    borrows_ = std::move(borrows);
    seen_at_ = now;
    error_.clear();
  }

  std::vector<Screen::Line> lines(std::size_t columns) const {
    std::vector<Screen::Line> lines{{heading(columns), Screen::Style::plain}};
    if (error_.empty()) lines.push_back({"", Screen::Style::plain});
    for (std::string_view rest = error_; !rest.empty();) {
      const std::size_t size = std::max<std::size_t>(clipped(rest, columns).size(), 1);
      lines.push_back({std::string(rest.substr(0, size)), Screen::Style::reverse});
      rest.remove_prefix(size);
    }
    const std::string table = top_table(pools_, columns);
    for (std::size_t at = 0; at < table.size();) {
      const std::size_t end = table.find('\n', at);
      lines.push_back({table.substr(at, end - at), at == 0 ? Screen::Style::bold : Screen::Style::plain});
      at = end + 1;
    }
    return lines;
  }

 private:
  void lost(const std::string& why) {
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - seen_at_).count();
    error_ = why + "; the data is " + std::to_string(since) + " s old, retrying each second";
  }

  // Leaves out what does not fit.
  std::string heading(std::size_t columns) const {
    const std::string counts = totals(), where = "carpool at " + instance_.address + "   ", keys = "   q quits";
    if (where.size() + counts.size() + keys.size() <= columns) return where + counts + keys;
    if (counts.size() + keys.size() <= columns) return counts + keys;
    return counts;
  }

  std::string totals() const {
    const auto failing = std::count_if(pools_.begin(), pools_.end(), &fails);
    std::uint64_t open = 0, busy = 0, waiting = 0;
    for (const Json& pool : pools_) {
      open += pool.value("active", 0U);
      busy += pool.value("borrowed", 0U);
      waiting += pool.value("waiting", 0U);
    }
    return std::to_string(pools_.size()) + " origins, " + (failing == 0 ? "" : std::to_string(failing) + " failing, ") +
           std::to_string(open) + " open, " + std::to_string(busy) + " busy, " + std::to_string(waiting) + " waiting";
  }

  Instance instance_;
  Json pools_ = Json::array();
  std::map<std::string, double> borrows_;
  SteadyClock::time_point seen_at_;
  std::string error_;
};

}  // namespace

Json busiest_first(const Json& pools) {
  std::vector<Json> rows(pools.begin(), pools.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    if (fails(a) != fails(b)) return fails(a);
    const auto work = [](const Json& pool) { return pool.value("borrowed", 0U) + pool.value("waiting", 0U); };
    return work(a) != work(b) ? work(a) > work(b) : a.value("borrows", 0ULL) > b.value("borrows", 0ULL);
  });
  return rows;
}

void watch(const Instance& instance, const Json& first) {
  PoolsView view(instance);
  view.update(first);
  Screen screen(STDIN_FILENO, STDOUT_FILENO);
  SteadyClock::time_point next = SteadyClock::now() + kBetween;
  for (;;) {
    screen.draw(view.lines(screen.size().columns));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - SteadyClock::now());
    const Screen::Event event = screen.wait(std::max(left, std::chrono::milliseconds(0)));
    if (event == Screen::Event::leave) return;
    if (event != Screen::Event::time) continue;
    view.poll();
    next = SteadyClock::now() + kBetween;
  }
}

}  // namespace carpool::proxy::cli
