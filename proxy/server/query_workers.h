// query_workers: lets a thread that runs no loop ask every loop for a value and wait, with a timeout, for the results.
// For the admin endpoint: never on the request path, never from a loop.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "exec/posted_function.h"
#include "proxy/server/worker.h"

namespace carpool::proxy {

// `ask(worker)` runs on each worker's loop and returns a Response. Results that do not arrive within `timeout` are left
// out; the call still runs, and its result is discarded.
template <class Response, class Ask>
std::vector<Response> query_workers(const Workers& workers, Duration timeout, Ask ask) {
  struct Replies {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<Response> answers;  // guarded by mutex
  };
  const auto replies = std::make_shared<Replies>();
  for (const auto& worker : workers) {
    exec::send(worker->parts.loop, [&to = *worker, replies, ask]() LOOP_ONLY {
      Response answer = ask(to);
      {
        const std::scoped_lock lock(replies->mutex);
        replies->answers.push_back(std::move(answer));
      }
      replies->came.notify_one();
    });
  }
  std::unique_lock lock(replies->mutex);
  replies->came.wait_for(lock, timeout, [&] { return replies->answers.size() == workers.size(); });
  return std::move(replies->answers);
}

// Queries a single loop. Empty if it does not respond in time.
template <class Response, class Ask>
std::optional<Response> query_worker(exec::Loop& loop, Duration timeout, Ask ask) {
  struct Replies {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Response> answer;  // guarded by mutex
  };
  const auto replies = std::make_shared<Replies>();
  exec::send(loop, [replies, ask]() LOOP_ONLY {
    Response answer = ask();
    {
      const std::scoped_lock lock(replies->mutex);
      replies->answer = std::move(answer);
    }
    replies->came.notify_one();
  });
  std::unique_lock lock(replies->mutex);
  replies->came.wait_for(lock, timeout, [&] { return replies->answer.has_value(); });
  return std::move(replies->answer);
}

}  // namespace carpool::proxy
