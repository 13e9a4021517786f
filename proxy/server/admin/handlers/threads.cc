#include "proxy/server/admin/handlers/threads.h"

#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {
namespace {

// The maximum of queued tasks per source; their sum bounds the queue, which the thread pool asserts.
Json sources_of(const ThreadsInfo& info) {
  Json sources = Json::array();
  for (const ThreadsInfo::Source& source : info.sources) {
    sources.push_back(
        {{"name", source.name}, {"limit", source.limit}, {"queued", source.queued}, {"refused", source.refused}});
  }
  return sources;
}

}  // namespace

Response threads_response(const ThreadsInfo& info) {
  Json json;
  json["strategy"] = info.strategy;
  json["min"] = info.min;
  json["max"] = info.max;
  json["leases"] = info.leases;
  json["reserve"] = {
      {"capacity", info.reserve.capacity}, {"available", info.reserve.available}, {"pending", info.reserve.pending}};
  json["tasks"] = {{"limit", info.tasks.limit}, {"existing", info.tasks.existing}, {"refused", info.tasks.refused}};
  json["queue"] = {{"length", info.queue}, {"limit", info.queue_limit}, {"sources", sources_of(info)}};
  json["started"] = info.started;
  json["left"] = info.left;
  json["start_failures"] = info.start_failures;
  json["failed_jobs"] = info.failed;
  json["threads"] = Json::array();
  for (const ThreadsInfo::Thread& thread : info.threads) {
    json["threads"].push_back({{"number", thread.number},
                               {"state", thread.state},
                               {"doing", thread.activity},
                               {"seconds", seconds(thread.since)}});
  }
  Json tasks = Json::array();
  for (const ThreadsInfo::Task& task : info.background_tasks) {
    tasks.push_back({{"name", task.name}, {"running", task.running}, {"seconds", seconds(task.since)}});
  }
  json["background"] = {{"queued", info.background.queued},
                        {"running", info.background.running},
                        {"max_running", info.background.max_running},
                        {"executed", info.background.executed},
                        {"tasks", tasks}};
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
