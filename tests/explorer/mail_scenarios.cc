// Scenarios of messages to a loop: the mailbox, the parker, the pool's delivery queue and coalesced mail. The receiver
// is thread 0; it sleeps until everything has arrived, so a lost wake-up is a deadlock.
#include <array>
#include <exception>
#include <span>
#include <string>

#include "exec/coalesced_mail.h"
#include "exec/futex.h"
#include "exec/mailbox.h"
#include "exec/parker.h"
#include "pool/queue/delivery_queue.h"
#include "tests/explorer/scenarios.h"

namespace carpool::exec {

void futex_wait(Atomic<std::uint32_t>& word, std::uint32_t value, const std::timespec*) {
  word.wait_for_change(value);
}

void futex_wake(Atomic<std::uint32_t>& word) {
  word.wake_all();
}

// No scenario's mail throws.
void CallbackGuard::caught(std::exception_ptr) noexcept {
  std::terminate();
}

}  // namespace carpool::exec

namespace carpool::explore {
namespace {

class Receiver : public Scenario {
 public:
  unsigned threads() const override { return 3; }
  std::string verdict() override { return box_.has_mail() ? "mail was left" : ""; }

 protected:
  void send(exec::Mail& mail) {
    if (box_.push(mail)) parker_.unpark();
  }
  template <class Done>
  void receive_until(Done done) {
    exec::assume_on_loop();
    while (!done()) {
      if (box_.deliver(8) == 0) parker_.park();
    }
  }

  exec::Mailbox box_;
  exec::Parker parker_;
};

class CountedMail final : public exec::Mail {
 public:
  void arrive() override {
    content.read();
    ++arrived;
  }
  Plain content;
  int arrived = 0;
};

class TwoSendMail final : public Receiver {
 public:
  void run(unsigned thread) override {
    if (thread == 0) return receive_until([this] { return letters_[0].arrived + letters_[1].arrived == 2; });
    CountedMail& letter = letters_[thread - 1];
    letter.content.write();
    send(letter);
  }

 private:
  std::array<CountedMail, 2> letters_;
};

// The second mail of one sender arrives after its first.
class MailInOrder final : public Receiver {
 public:
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      return receive_until([this] {
        out_of_order_ |= letters_[1].arrived > letters_[0].arrived;
        return letters_[0].arrived + letters_[1].arrived == 2;
      });
    }
    for (CountedMail& letter : letters_) {
      letter.content.write();
      send(letter);
    }
  }
  std::string verdict() override { return out_of_order_ ? "mail arrived out of order" : Receiver::verdict(); }

 private:
  std::array<CountedMail, 2> letters_;
  bool out_of_order_ = false;
};

class TwoWakeOneSleeper final : public Scenario {
 public:
  unsigned threads() const override { return 3; }
  void run(unsigned thread) override {
    if (thread != 0) {
      content_[thread - 1].write();
      sent_.fetch_add(1, std::memory_order_relaxed);
      return parker_.unpark();
    }
    while (sent_.load(std::memory_order_relaxed) != 2) parker_.park(kNever, 1);
    while (parker_.park(Instant{})) {
    }
  }
  std::string verdict() override { return ""; }

 private:
  std::array<Plain, 2> content_;
  exec::Atomic<int> sent_{0};
  exec::Parker parker_;
};

// A wake-up that park() consumed makes visible what was written before it.
class WokenSeesWhatWasWritten final : public Scenario {
 public:
  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      parker_.park(kNever, 1);
      return content_.read();
    }
    content_.write();
    parker_.unpark();
  }
  std::string verdict() override { return ""; }

 private:
  Plain content_;
  exec::Parker parker_;
};

class CountedDelivery final : public pool::Delivery {
 public:
  void arrive(Instant) override {
    content.read();
    ++arrived;
  }
  Plain content;
  int arrived = 0;
};

// As the proxy's environment: the mail that wakes the receiver is one for all deliveries, sent when the queue was
// empty.
class TwoDeliver final : public Receiver {
 public:
  void run(unsigned thread) override {
    if (thread == 0) return receive_until([this] { return parcels_[0].arrived + parcels_[1].arrived == 2; });
    CountedDelivery& parcel = parcels_[thread - 1];
    parcel.content.write();
    if (queue_.push(parcel)) send(wake_up_);
  }
  std::string verdict() override { return queue_.empty() ? Receiver::verdict() : "a delivery was left"; }

 private:
  class WakeUp final : public exec::Mail {
   public:
    explicit WakeUp(pool::DeliveryQueue& queue) : queue_(queue) {}
    void arrive() override { queue_.deliver_all({}); }

   private:
    pool::DeliveryQueue& queue_;
  };
  pool::DeliveryQueue queue_;
  WakeUp wake_up_{queue_};
  std::array<CountedDelivery, 2> parcels_;
};

// A loop of which only post() is used.
class PostOnly final : public exec::Loop {
 public:
  PostOnly(exec::Mailbox& box, exec::Parker& parker) : box_(box), parker_(parker) {}
  void post(exec::Mail& mail) override {
    if (box_.push(mail)) parker_.unpark();
  }
  LoopId id() const override { return 0; }
  Instant now() const override { return {}; }
  void arm(exec::Timer&, Instant) override {}
  void disarm(exec::Timer&) override {}
  void defer(exec::Deferred&) override {}
  Result<exec::WatchKey> watch(int, exec::Watcher&) override { return exec::WatchKey{}; }
  void unwatch(int, exec::WatchKey) override {}
  Status watch_shared(int, std::uint32_t, std::uint32_t) override { return Done{}; }
  void unwatch_shared(int) override {}
  void set_shared_watcher(exec::SharedWatcher*) override {}

 private:
  std::span<char> scratch() override { return {}; }
  exec::Mailbox& box_;
  exec::Parker& parker_;
};

// Each change is recorded, then posted: the last call of `arrived` sees both.
class ChangesShareMail final : public Receiver {
 public:
  void run(unsigned thread) override {
    if (thread == 0) return receive_until([this] { return seen_ == 2; });
    (thread == 1 ? first_ : second_).store(1, std::memory_order_relaxed);
    mail_.post();
  }
  // The first mail may have found both changes, and the second one is left.
  std::string verdict() override {
    exec::assume_on_loop();
    while (box_.deliver(8) != 0) {
    }
    return seen_ == 2 ? "" : "a change was not seen";
  }

 private:
  void look() { seen_ = first_.load(std::memory_order_relaxed) + second_.load(std::memory_order_relaxed); }
  exec::Atomic<int> first_{0}, second_{0};
  int seen_ = 0;
  PostOnly loop_{box_, parker_};
  exec::CoalescedMail mail_{loop_, exec::Bound::to<&ChangesShareMail::look>(*this)};
};

}  // namespace

std::vector<Named> mail_scenarios() {
  return {
      named<TwoSendMail>("mail: two send to one"),
      named<MailInOrder>("mail: two mails of one sender"),
      named<TwoWakeOneSleeper>("parker: two wake one sleeper"),
      named<WokenSeesWhatWasWritten>("parker: what was written before a wake-up"),
      named<TwoDeliver>("deliveries: two share a wake-up"),
      named<ChangesShareMail>("coalesced mail: two changes share one mail"),
  };
}

}  // namespace carpool::explore
