// Litmus test of the lost wake-up on the real processor: a release publishes its entry, then reads `waiting`; a
// borrower publishes `waiting`, then reads the entries. In no round may both miss. The control publishes by a plain
// store, which this processor does reorder: without a failure there the rounds would prove nothing.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <thread>

#include "pool/core/pool.h"

namespace carpool::pool {
namespace {

constexpr std::size_t kAtOnce = 512;
constexpr EntryWord kBorrowed = EntryWord{}.home(0).generation(1).users(1);

// One round: an entry is released while a borrower arrives.
struct Meeting {
  alignas(kCacheLine) AtomicWord word{kBorrowed.bits()};
  Bitmap idle;
  alignas(kCacheLine) Atomic<std::uint32_t> waiting{0};
  alignas(kCacheLine) std::atomic<unsigned> arrived{0};
  alignas(kCacheLine) bool releaser_saw = false;  // that a borrower waits
  alignas(kCacheLine) bool wisher_saw = false;    // that an entry is idle
};

struct AsThePool {
  static void release(Meeting& at) {
    ASSERT_TRUE(try_release(at.word));
    at.idle.set(1);
  }
};
// The entry's word and its bit by stores that may wait in the store buffer.
struct ByPlainStores {
  static void release(Meeting& at) {
    at.word.store(kBorrowed.users(0).bits(), std::memory_order_release);
    at.idle.bits.store(1, std::memory_order_release);
  }
};

template <class How>
class Litmus {
 public:
  // Returns the rounds in which both read too early; stops at the first one if `enough`.
  std::uint64_t run(std::uint64_t rounds, bool enough) {
    std::thread other([this] { play(1); });
    for (std::uint64_t done = 0; done < rounds && !(enough && missed_ != 0); done += kAtOnce) {
      for (Meeting& at : meetings_) reset(at);
      play_once(0);
      for (const Meeting& at : meetings_) missed_ += !at.releaser_saw && !at.wisher_saw ? 1 : 0;
    }
    over_.store(true);
    round_.fetch_add(1);
    other.join();
    return missed_;
  }

 private:
  static void reset(Meeting& at) {
    at.word.store(kBorrowed.bits(), std::memory_order_relaxed);
    at.idle.bits.store(0, std::memory_order_relaxed);
    at.waiting.store(0, std::memory_order_relaxed);
    at.arrived.store(0, std::memory_order_relaxed);
  }
  void play(unsigned side) {
    for (std::uint64_t round = 1;; ++round) {
      wait_until([&] { return round_.load() >= round; });
      if (over_.load()) return;
      meet(side);
      ended_.store(round);
    }
  }
  void play_once(unsigned side) {
    const std::uint64_t round = round_.fetch_add(1) + 1;
    meet(side);
    wait_until([&] { return ended_.load() == round; });
  }
  template <class Is>
  static void wait_until(Is is) {
    for (unsigned spins = 1; !is(); ++spins) {
      if (spins % 4096 == 0) std::this_thread::yield();
    }
  }
  // Both threads walk through the rounds and begin each at the same moment.
  void meet(unsigned side) {
    std::uint32_t& lot = lots_[side].value;
    for (Meeting& at : meetings_) {
      at.arrived.fetch_add(1);
      wait_until([&] { return at.arrived.load(std::memory_order_acquire) == 2; });
      // Varies which thread is first.
      for (std::uint32_t wait = (lot = lot * 1664525 + 1013904223) >> 27; wait != 0; --wait)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      if (side == 0) {
        How::release(at);
        at.releaser_saw = at.waiting.load(std::memory_order_seq_cst) != 0;
      } else {
        at.waiting.fetch_add(1, std::memory_order_seq_cst);
        at.wisher_saw = at.idle.read() != 0 && EntryWord(at.word.load(std::memory_order_acquire)).idle();
      }
    }
  }

  std::unique_ptr<std::array<Meeting, kAtOnce>> memory_ = std::make_unique<std::array<Meeting, kAtOnce>>();
  std::array<Meeting, kAtOnce>& meetings_ = *memory_;
  std::atomic<std::uint64_t> round_{0}, ended_{0};
  std::atomic<bool> over_{false};
  struct alignas(kCacheLine) Lot {
    std::uint32_t value;
  };
  std::array<Lot, 2> lots_{{{1}, {2}}};
  std::uint64_t missed_ = 0;
};

// A million here, ten million in the long form: on a busy machine each round costs more.
std::uint64_t rounds() {
  const char* asked = std::getenv("CARPOOL_LITMUS_ROUNDS");
  if (asked != nullptr) return std::strtoull(asked, nullptr, 10);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return 50'000;
#else
  return 1'000'000;
#endif
}

TEST(AReleaseAndABorrower, NeverMissEachOtherOnThisProcessor) {
  EXPECT_EQ(Litmus<AsThePool>().run(rounds(), false), 0U);
}

TEST(AReleaseAndABorrower, WouldMissEachOtherIfThePublicationWereAPlainStore) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor sees its own stores";
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "TSan puts its own barriers between";
#endif
  EXPECT_NE(Litmus<ByPlainStores>().run(200 * rounds(), true), 0U);
}

}  // namespace
}  // namespace carpool::pool
