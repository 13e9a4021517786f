// A pool of something that is no connection: parsers that are expensive to make, shared by threads. Each thread has its
// own end of the pool (the affinity key, a loop in carpool) and takes another's parser when it has none of its own.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pool/pool.h"

namespace {

// The thing: what a thread uses alone, for a while.
class Parser {
 public:
  explicit Parser(int number) : number_(number), table_(1 << 16) {}  // expensive
  std::size_t words(const std::string& text) {
    std::size_t count = 0;
    bool inside = false;
    for (const char c : text) {
      count += !inside && c != ' ' ? 1 : 0;
      inside = c != ' ';
    }
    ++texts_;
    return count;
  }
  int number() const { return number_; }
  std::size_t texts() const { return texts_; }

 private:
  int number_;
  std::size_t texts_ = 0;
  std::vector<int> table_;
};

using Parsers = carpool::pool::Pool<std::unique_ptr<Parser>>;
using Entry = carpool::pool::Entry<std::unique_ptr<Parser>>;
using carpool::pool::LoopId;

// The right to use one; given back when it goes.
class Borrowed {
 public:
  Borrowed(Parsers& pool, Entry& entry) : pool_(&pool), entry_(&entry) {}
  Borrowed(Borrowed&& other) noexcept : pool_(other.pool_), entry_(std::exchange(other.entry_, nullptr)) {}
  Borrowed& operator=(Borrowed&&) = delete;
  ~Borrowed() {
    if (entry_ != nullptr) pool_->release(*entry_);
  }
  Parser* operator->() const { return entry_->value.get(); }

 private:
  Parsers* pool_;
  Entry* entry_;
};

// A free one, or a new one while there is room; none: all are in use and there may be no more.
std::optional<Borrowed> take(Parsers& pool, LoopId me) {
  const auto any = [](const Entry&, carpool::pool::Word) { return carpool::pool::Verdict::take; };
  if (const auto found = pool.acquire(me, true, any); found.taken) return Borrowed(pool, *found.entry);
  Entry* entry = pool.reserve();  // counts from here on: the cap is exact
  if (entry == nullptr) return std::nullopt;
  entry->value = std::make_unique<Parser>(static_cast<int>(pool.in_use()));
  pool.enable(*entry, me, true);  // lent in the same step: nobody can take it before us
  return Borrowed(pool, *entry);
}

}  // namespace

int main() {
  constexpr unsigned kThreads = 4;
  constexpr std::size_t kTexts = 20000;
  Parsers pool(2, kThreads);  // two parsers for four threads
  std::vector<std::thread> threads;
  std::vector<std::size_t> done(kThreads);
  for (unsigned n = 0; n < kThreads; ++n) {
    threads.emplace_back([&pool, &done, n] {
      while (done[n] < kTexts) {
        if (const std::optional<Borrowed> parser = take(pool, static_cast<LoopId>(n))) {
          done[n] += (*parser)->words("what is shared is made once") == 6 ? 1 : 0;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t texts = 0, parsers = 0;
  pool.terminate([&](Entry& entry) {
    std::printf("parser %d read %zu texts\n", entry.value->number(), entry.value->texts());
    texts += entry.value->texts();
    ++parsers;
    entry.value.reset();
    pool.vacate(entry);
  });
  std::printf("%zu texts by %zu parsers, %u left\n", texts, parsers, pool.in_use());
  return texts == kThreads * kTexts && parsers <= 2 && pool.in_use() == 0 ? 0 : 1;
}
