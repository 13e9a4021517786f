// A pool of something that is no connection: parsers that are expensive to make, shared by threads. Each thread has its
// own side of the pool (its affinity) and takes another's parser when it has none of its own. What a text left in a
// parser is wiped when it comes back: the next borrower finds it anonymous.
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pool/core/object_pool.h"

namespace {

// The thing: what a thread uses alone, for a while.
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

// How many of `texts` were read right. Without a free parser, and no room for one more, the thread lets others go
// first.
std::size_t read(Parsers& parsers, carpool::pool::LoopId me, std::size_t texts) {
  std::size_t right = 0;
  for (std::size_t done = 0; done < texts;) {
    if (const auto parser = parsers.take_or_make({.loop = me}, make)) {
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
  auto foreign = std::make_unique<Parser>();       // one was there before
  if (!parsers.insert(foreign)) return 1;
  std::atomic<std::size_t> right{0};
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < kThreads; ++n) {
    threads.emplace_back([&, n] { right += read(parsers, static_cast<carpool::pool::LoopId>(n), kTexts); });
  }
  for (std::thread& thread : threads) thread.join();
  std::fputs(parsers.dump().c_str(), stdout);
  const std::uint32_t made = parsers.in_use();
  parsers.terminate();
  std::printf("%zu texts by %u parsers, %u left\n", right.load(), made, parsers.in_use());
  return right == kThreads * kTexts && made <= 2 && parsers.in_use() == 0 ? 0 : 1;
}
