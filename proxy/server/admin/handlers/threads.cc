#include "proxy/server/admin/handlers/threads.h"

#include "proxy/server/admin/json.h"

namespace carpool::proxy::admin {
namespace {

// The maximum of queued tasks per source; their sum bounds the queue, which the thread pool asserts.
Json sources_of(const ThreadsInfo& facts) {
  Json sources = Json::array();
  for (const ThreadsInfo::Source& source : facts.sources) {
    sources.push_back(
        {{"name", source.name}, {"limit", source.limit}, {"queued", source.queued}, {"refused", source.refused}});
  }
  return sources;
}

}  // namespace

Response threads_response(const ThreadsInfo& facts) {
  Json json;
  json["strategy"] = facts.strategy;
  json["min"] = facts.min;
  json["max"] = facts.max;
  json["leases"] = facts.leases;
  json["reserve"] = {
      {"capacity", facts.reserve.capacity}, {"available", facts.reserve.available}, {"pending", facts.reserve.pending}};
  json["tasks"] = {{"limit", facts.tasks.limit}, {"existing", facts.tasks.existing}, {"refused", facts.tasks.refused}};
  json["queue"] = {{"length", facts.queue}, {"limit", facts.queue_limit}, {"sources", sources_of(facts)}};
  json["started"] = facts.started;
  json["left"] = facts.left;
  json["start_failures"] = facts.start_failures;
  json["failed_jobs"] = facts.failed;
  json["threads"] = Json::array();
  for (const ThreadsInfo::Thread& thread : facts.threads) {
    json["threads"].push_back({{"number", thread.number},
                               {"state", thread.state},
                               {"doing", thread.doing},
                               {"seconds", seconds(thread.since)}});
  }
  Json tasks = Json::array();
  for (const ThreadsInfo::Task& task : facts.background_tasks) {
    tasks.push_back({{"name", task.name}, {"running", task.running}, {"seconds", seconds(task.since)}});
  }
  json["background"] = {{"queued", facts.background.queued},
                        {"running", facts.background.running},
                        {"max_running", facts.background.max_running},
                        {"executed", facts.background.executed},
                        {"tasks", tasks}};
  return json_response(200, json);
}

}  // namespace carpool::proxy::admin
