// Inquiry: a thread that is no loop's asks every loop something and waits, a bounded time, for what they say. For the
// admin endpoint: never on the request path, never from a loop.
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

// `ask(worker)` runs on each worker's loop and returns an Answer. Answers that did not come within `timeout` are left
// out; their question is still asked, and its answer thrown away.
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

// One loop alone; nothing: it did not answer in time.
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
