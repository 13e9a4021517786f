#include "proxy/reload/round.h"

#include <utility>

#include "proxy/house.h"

namespace carpool::proxy {

class ReloadRound::Order final : public exec::Mail {
 public:
  // `closed`: whose clients end; filled by the first worker's order, which the others wait for.
  Order(std::shared_ptr<ReloadRound> round, Worker& worker, std::vector<const Listener*> closed)
      : round_(std::move(round)), worker_(worker), closed_(std::move(closed)) {}

  void arrive() override LOOP_ONLY {
    const std::unique_ptr<Order> self(this);  // was released into the mail
    House& house = round_->house_;
    if (&worker_ == house.workers().front().get()) {
      closed_ = house.change_listeners(*round_);
      house.origins().follow_limits(worker_.loop().now());
      for (auto& other : house.workers()) {
        if (other.get() == &worker_) continue;
        other->loop().post(*std::make_unique<Order>(round_, *other, closed_).release());
      }
    }
    worker_.on_reload(round_->dns, closed_);
    round_->arrived();
  }

 private:
  const std::shared_ptr<ReloadRound> round_;
  Worker& worker_;
  std::vector<const Listener*> closed_;
};

bool ReloadRound::run(Duration patience) {
  missing_ = house_.workers().size();
  Worker& first = *house_.workers().front();
  first.loop().post(*std::make_unique<Order>(shared_from_this(), first, std::vector<const Listener*>()).release());
  std::unique_lock lock(mutex_);
  return all_.wait_for(lock, patience, [this] { return missing_ == 0; });
}

void ReloadRound::arrived() {
  const std::scoped_lock lock(mutex_);
  if (--missing_ == 0) all_.notify_one();
}

}  // namespace carpool::proxy
