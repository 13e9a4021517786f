// Inquiry: a thread that is no loop's asks every loop something and waits, a bounded time, for what they say. For the
// admin endpoint: never on the request path, never from a loop.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "exec/mail.h"
#include "proxy/worker.h"

namespace carpool::proxy {

// `ask(worker)` runs on each worker's loop and returns an Answer. Answers that did not come within `patience` are left
// out; their question is still asked, and its answer thrown away.
template <class Answer, class Ask>
std::vector<Answer> ask_loops(const std::vector<std::unique_ptr<Worker>>& workers, Duration patience, Ask ask) {
  struct Desk {
    std::mutex mutex;
    std::condition_variable came;
    std::vector<Answer> answers;  // guarded by mutex
  };
  class Question final : public exec::Mail {
   public:
    Question(Worker& worker, std::shared_ptr<Desk> desk, Ask ask)
        : worker_(worker), desk_(std::move(desk)), ask_(std::move(ask)) {}
    void arrive() override LOOP_ONLY {
      const std::unique_ptr<Question> self(this);  // was released into the mail
      Answer answer = ask_(worker_);
      {
        const std::scoped_lock lock(desk_->mutex);
        desk_->answers.push_back(std::move(answer));
      }
      desk_->came.notify_one();
    }

   private:
    Worker& worker_;
    std::shared_ptr<Desk> desk_;
    Ask ask_;
  };
  const auto desk = std::make_shared<Desk>();
  for (const auto& worker : workers) worker->loop().post(*std::make_unique<Question>(*worker, desk, ask).release());
  std::unique_lock lock(desk->mutex);
  desk->came.wait_for(lock, patience, [&] { return desk->answers.size() == workers.size(); });
  return std::move(desk->answers);
}

}  // namespace carpool::proxy
