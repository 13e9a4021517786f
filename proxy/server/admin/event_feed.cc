#include "proxy/server/admin/event_feed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proxy/server/admin/failing.h"
#include "proxy/server/admin/handlers/pools.h"
#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {
namespace {

constexpr std::size_t kMaxCells = 2000;  // per pool; further connections are only counted
constexpr Duration kResolution = std::chrono::milliseconds(10);

std::int64_t milliseconds(Instant when) {
  return when.time_since_epoch() / kResolution * (kResolution / std::chrono::milliseconds(1));
}

// Returns [id, state, opened at, idle since or null, uses, protocol, loop] as an array, because member names would be
// most of the bytes.
Json cell_of(const ConnectionInfo& info, Instant now) {
  Json idle = info.idle > Duration::zero() ? Json(milliseconds(now - info.idle)) : Json(nullptr);
  return Json::array({info.id, std::string(pool::name(info.state)), milliseconds(now - info.age), std::move(idle),
                      info.uses, info.protocol, info.loop});
}

Json description(const AdminView& view, const PoolInfo& pool, Instant now) {
  Json json = json_of(pool);
  const std::vector<ConnectionInfo> connections = view.connections(pool.origin);
  Json cells = Json::array();
  for (std::size_t i = 0; i < std::min(connections.size(), kMaxCells); ++i) {
    cells.push_back(cell_of(connections[i], now));
  }
  json["cells"] = std::move(cells);
  const TrafficInfo traffic = view.traffic(pool.origin);
  json["traffic"] = {{"requests", traffic.requests}, {"failed", traffic.failed}, {"times", traffic.times}};
  return json;
}

Json by_label(const std::vector<metrics::Labelled>& parts) {
  Json json = Json::object();
  for (const auto& [label, value] : parts) json[std::string(label)] = value;
  return json;
}

Json threads_of(const AdminView& view) {
  const std::optional<metrics::ExecSample> exec = view.exec();
  if (!exec) return nullptr;
  return {{"tasks", by_label(exec->tasks)},
          {"handovers", by_label(exec->handovers)},
          {"threads", by_label(exec->threads)},
          {"max", exec->threads_max},
          {"queue", exec->queue},
          {"low", exec->low_on_threads}};
}

// Renders everything except the pools, up to the beginning of their list.
std::string opening(const AdminView& view, Instant now) {
  Json json{{"now", milliseconds(now)},
            {"version", view.build().version},
            {"not_ready", view.not_ready()},
            {"shed_level", view.overload().shed_level},
            {"threads", threads_of(view)}};
  add_old_names(json, {{"shed_level", "sheds"}});
  std::string text = json_text(json);
  text.pop_back();
  return text + ",\"pools\":[";
}

std::string message(const char* event, const std::string& opening, const std::vector<std::string*>& pools,
                    const Json& gone) {
  std::string text = std::string("event: ") + event + "\ndata: " + opening;
  for (std::size_t i = 0; i < pools.size(); ++i) text.append(i == 0 ? "" : ",").append(*pools[i]);
  return text + "],\"gone\":" + json_text(gone) + "}\n\n";
}

}  // namespace

Response events_response(const Call&) {
  Response response = text_response(200, "text/event-stream", {});
  response.stream = true;
  return response;
}

void EventFeed::update(const AdminView& view) {
  const Instant now = Clock::now();
  std::unordered_map<std::string, std::string> sent_now;
  std::vector<std::string*> all, changed;
  std::vector<PoolInfo> pools = view.pools();
  find_failing(view, pools);
  for (const PoolInfo& pool : pools) {
    if (pool.replaced && sent_now.contains(pool.origin)) continue;
    std::string& text = sent_now[pool.origin];
    text = json_text(description(view, pool, now));
    all.push_back(&text);
    const auto before = pools_.find(pool.origin);
    if (before == pools_.end() || before->second != text) changed.push_back(&text);
  }
  Json gone = Json::array();
  for (const auto& [label, text] : pools_) {
    if (!sent_now.contains(label)) gone.push_back(label);
  }
  const std::string begin = opening(view, now);
  event_.whole = std::make_shared<const std::string>(message("state", begin, all, Json::array()));
  event_.changes = std::make_shared<const std::string>(message("change", begin, changed, gone));
  pools_ = std::move(sent_now);
  renderings_.fetch_add(1, std::memory_order_relaxed);
}

void EventFeed::clear() {
  pools_ = {};
  event_ = {};
}

}  // namespace carpool::proxy::admin
