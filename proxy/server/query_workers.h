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

// `ask(worker)` runs on each worker's loop and returns an Answer. Answers that did not come within `patience` are left
// out; their question is still asked, and its answer thrown away.
template <class Answer, class Ask>
std::vector<Answer> ask_loops(const Workers& workers, Duration patience, Ask ask) {
  struct Desk {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<Answer> answers;  // guarded by mutex
  };
  const auto desk = std::make_shared<Desk>();
  for (const auto& worker : workers) {
    exec::send(worker->parts.loop, [&to = *worker, desk, ask]() LOOP_ONLY {
      Answer answer = ask(to);
      {
        const std::scoped_lock lock(desk->mutex);
        desk->answers.push_back(std::move(answer));
      }
      desk->came.notify_one();
    });
  }
  std::unique_lock lock(desk->mutex);
  desk->came.wait_for(lock, patience, [&] { return desk->answers.size() == workers.size(); });
  return std::move(desk->answers);
}

// One loop alone; nothing: it did not answer in time.
template <class Answer, class Ask>
std::optional<Answer> ask_loop(exec::Loop& loop, Duration patience, Ask ask) {
  struct Desk {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Answer> answer;  // guarded by mutex
  };
  const auto desk = std::make_shared<Desk>();
  exec::send(loop, [desk, ask]() LOOP_ONLY {
    Answer answer = ask();
    {
      const std::scoped_lock lock(desk->mutex);
      desk->answer = std::move(answer);
    }
    desk->came.notify_one();
  });
  std::unique_lock lock(desk->mutex);
  desk->came.wait_for(lock, patience, [&] { return desk->answer.has_value(); });
  return std::move(desk->answer);
}

}  // namespace carpool::proxy
