// parsers: an example of a pool of objects that are no connections: parsers that are expensive to construct, shared by
// threads. Each thread has its own part of the pool (its affinity) and takes another thread's parser if it has none. A
// parser is cleared when it is released.
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pool/core/object_pool.h"

namespace {

// The pooled object: used by one thread at a time.
class Parser {
 public:
  explicit Parser() : table_(1 << 16) {}  // expensive
  std::size_t words(const std::string& text) {
    bool inside = false;
    for (const char c : text) {
      words_ += !inside && c != ' ' ? 1 : 0;
      inside = c != ' ';
    }
    return words_;
  }
  void forget() { words_ = 0; }

 private:
  std::size_t words_ = 0;
  std::vector<int> table_;
};

using Owned = std::unique_ptr<Parser>;
struct Anonymous {
  static void on_release(const Owned& parser) { parser->forget(); }
};
using Parsers = carpool::pool::ObjectPool<Owned, Anonymous>;

std::optional<Owned> make() {
  return std::make_unique<Parser>();
}

// Returns how many of `texts` were parsed correctly. If no parser is idle and the pool is full, the thread yields.
std::size_t read(Parsers& parsers, carpool::LoopId me, std::size_t texts) {
  std::size_t right = 0;
  for (std::size_t done = 0; done < texts;) {
    if (const auto parser = parsers.acquire_or_make({.loop = me}, make)) {
      right += (*parser)->words("what is shared is made once") == 6 ? 1 : 0;
      ++done;
    } else {
      std::this_thread::yield();
    }
  }
  return right;
}

}  // namespace

int main() {
  constexpr unsigned kThreads = 4;
  constexpr std::size_t kTexts = 20000;
  Parsers parsers({.cap = 2, .loops = kThreads});  // two parsers for four threads
  auto foreign = std::make_unique<Parser>();       // an object that the pool did not create
  if (!parsers.insert(foreign)) return 1;
  std::atomic<std::size_t> right{0};
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] { right += read(parsers, static_cast<carpool::LoopId>(n), kTexts); });
  }
  for (std::thread& thread : threads) thread.join();
  std::fputs(parsers.dump().c_str(), stdout);
  const std::uint32_t made = parsers.in_use();
  parsers.terminate();
  std::printf("%zu texts by %u parsers, %u left\n", right.load(), made, parsers.in_use());
  return right == kThreads * kTexts && made <= 2 && parsers.in_use() == 0 ? 0 : 1;
}
