// ObjectPool: a Pool to use as it is, for any object, from any thread. What it adds to the core:
//   - a Loan gives itself back; discard() ends the object instead;
//   - take_or_make(): a free one, or a new one while the cap has room; what make() throws leaves no trace;
//   - insert(): an object that was made elsewhere joins;
//   - hooks, each once per loan and outside any compare-and-swap: on_acquire makes the object ready and may refuse it
//   (it ends, the next is tried), on_release makes it anonymous, and a tracker hears of every loan, return and end;
//   - how often an object may be used, the cap, and how many share one, all changeable while it is lent.
// An object ends by `T{}` being moved into its place, so T owns what it means (a unique_ptr, a handle). Jetty's Pool is
// the source of the list; weak references are left out, for a Loan cannot be forgotten.
//
// `SearchHint::loop` is an affinity: what one side gives back it gets again first. An ObjectPool must outlive its
// loans.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "pool/core/pool.h"
#include "pool/core/pool_dump.h"

namespace carpool::pool {

// A hook is there if it is declared, each with any subset of:
//   bool on_acquire(T&)   before the loan is handed out; false: the object is no good any more. May throw: the same
//   void on_release(T&)   before it can be lent again. A shared object may be in use by others meanwhile
//   void lent(std::uint32_t place), returned(place), ended(place), terminated()    the tracker's; any thread, at once
struct NoHooks {};

template <class T, class Hooks = NoHooks>
class ObjectPool {
 public:
  struct Settings {
    std::uint32_t cap = 1;
    unsigned loops = 1;           // sides with an affinity of their own
    std::uint32_t multiplex = 1;  // how many share one object
    std::uint32_t max_usage = 0;  // loans of one object; 0: no limit
  };

  class [[nodiscard]] Handle {
   public:
    Handle() = default;
    Handle(Handle&& other) noexcept
        : lender_(std::exchange(other.lender_, nullptr)), entry_(other.entry_), reusable_(other.reusable_) {}
    Handle& operator=(Handle&& other) noexcept {
      Handle dies(std::move(*this));
      lender_ = std::exchange(other.lender_, nullptr);
      entry_ = other.entry_;
      reusable_ = other.reusable_;
      return *this;
    }
    ~Handle() { give_back(); }

    explicit operator bool() const { return lender_ != nullptr; }
    T& operator*() const { return entry_->value; }
    T* operator->() const { return &entry_->value; }
    // In the pool, from 0: what the tracker and the dump call it.
    std::uint32_t place() const { return entry_->place(); }
    // Loans of this object up to this one.
    std::uint32_t uses() const { return EntryWord(entry_->word.load(std::memory_order_relaxed)).uses(); }

    void give_back() {
      if (lender_ != nullptr) std::exchange(lender_, nullptr)->take_back(*entry_, reusable_);
    }
    // It is never lent again and ends with its last user.
    void discard() {
      reusable_ = false;
      give_back();
    }

   private:
    friend class ObjectPool;
    Handle(ObjectPool& lender, Entry<T>& entry) : lender_(&lender), entry_(&entry) {}
    ObjectPool* lender_ = nullptr;
    Entry<T>* entry_ = nullptr;
    bool reusable_ = false;  // not before its hook said so
  };

  explicit ObjectPool(const Settings& settings, Hooks hooks = {})
      : pool_(settings.cap, settings.loops, settings.multiplex),
        max_usage_(settings.max_usage),
        hooks_(std::move(hooks)) {}
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;
  ~ObjectPool() {
    terminate();
    CARPOOL_ASSERT(pool_.in_use() == 0);  // a loan that outlives its lender would give back into nothing
  }

  // A free one, or an empty loan.
  Handle take(const SearchHint& where = {}) {
    for (;;) {
      const auto found = pool_.acquire(where, Judge{max_usage_.load(std::memory_order_relaxed)});
      if (found.entry == nullptr) return {};
      if (found.taken) {
        if (Handle loan(*this, *found.entry); admit(loan)) return loan;
      } else if (pool_.close_idle(*found.entry, found.before)) {
        end(*found.entry);
      }
    }
  }

  // Else what make() brings, an optional<T>. Empty when the cap is reached, when make() brought nothing, or after
  // terminate().
  template <class Make>
  Handle take_or_make(const SearchHint& where, Make&& make) {
    if (Handle loan = take(where)) return loan;
    Entry<T>* entry = pool_.reserve();  // counts from here on, so that no two make the last one
    if (entry == nullptr) return {};
    Reserved place(*this, *entry);
    std::optional<T> made = make();
    if (!made || !place.fill(std::move(*made), where.loop, true)) return {};
    Handle loan(*this, *entry);
    return admit(loan) ? std::move(loan) : Handle();
  }

  // An object that was made elsewhere, free from now on. False: there is no room, and `object` is as it was.
  bool insert(T& object, LoopId home = 0) {
    Entry<T>* entry = pool_.reserve();
    if (entry == nullptr) return false;
    Reserved place(*this, *entry);
    if (place.fill(std::move(object), home, false)) return true;
    object = std::move(entry->value);
    return false;
  }

  // Nothing is lent any more: what is free ends now, what is lent when it comes back.
  void terminate() {
    if (pool_.terminated()) return;
    if constexpr (requires(Hooks & hooks) { hooks.terminated(); }) hooks_.terminated();
    pool_.terminate([this](Entry<T>& entry) { end(entry); });
  }

  // ---- while it runs ----
  void cap(std::uint32_t cap) { pool_.cap(cap); }
  std::uint32_t cap() const { return pool_.cap(); }
  std::uint32_t in_use() const { return pool_.in_use(); }
  // For every object, those that are lent too: they end when they come back. relaxed: who reads the old one lends once
  // more by it.
  void max_usage(std::uint32_t most) { max_usage_.store(most, std::memory_order_relaxed); }
  // How many may share the object of this loan; who shares it already goes on.
  void share(const Handle& loan, std::uint32_t most) { pool_.share(*loan.entry_, most); }
  Hooks& hooks() { return hooks_; }

  // For people: one line an object. What it is stays unsaid: it may be in use.
  std::string dump() const { return dump_of(pool_); }
  Counts counts() const { return counts_of(pool_); }

 private:
  struct Judge {
    std::uint32_t most;
    Match operator()(const Entry<T>&, EntryWord word) const {
      if (most == 0 || word.uses() < most) return Match::take;
      return word.borrowed() ? Match::skip : Match::evict;  // its last user ends it
    }
  };

  // A reservation: given up unless it was filled.
  class Reserved {
   public:
    Reserved(ObjectPool& lender, Entry<T>& entry) : lender_(lender), entry_(entry) {}
    Reserved(const Reserved&) = delete;
    Reserved& operator=(const Reserved&) = delete;
    ~Reserved() {
      if (filled_) return;
      entry_.value = T{};
      static_cast<void>(lender_.pool_.close(entry_));  // false: terminate() was faster
      lender_.pool_.vacate(entry_);
    }
    bool fill(T&& object, LoopId home, bool lent) {
      entry_.value = std::move(object);
      return filled_ = lender_.pool_.enable(entry_, home, lent);
    }

   private:
    ObjectPool& lender_;
    Entry<T>& entry_;
    bool filled_ = false;
  };

  // False, or thrown: the loan, when it dies, ends the object.
  bool admit(Handle& loan) {
    if constexpr (requires(Hooks & hooks, T & object) {
                    { hooks.on_acquire(object) } -> std::convertible_to<bool>;
                  }) {
      if (!hooks_.on_acquire(*loan)) return false;
    }
    loan.reusable_ = true;
    if constexpr (requires(Hooks & hooks) { hooks.lent(loan.place()); }) hooks_.lent(loan.place());
    return true;
  }

  void take_back(Entry<T>& entry, bool fit) {
    if (fit) {
      if constexpr (requires(Hooks & hooks, T & object) { hooks.on_release(object); }) hooks_.on_release(entry.value);
      if constexpr (requires(Hooks & hooks) { hooks.returned(entry.place()); }) hooks_.returned(entry.place());
      const std::uint32_t most = max_usage_.load(std::memory_order_relaxed);
      const bool used_up = most != 0 && EntryWord(entry.word.load(std::memory_order_relaxed)).uses() >= most;
      if (!used_up && pool_.release(entry)) return;
    }
    if (pool_.close(entry)) end(entry);
  }

  void end(Entry<T>& entry) {
    entry.value = T{};
    if constexpr (requires(Hooks & hooks) { hooks.ended(entry.place()); }) hooks_.ended(entry.place());
    pool_.vacate(entry);
  }

  Pool<T> pool_;
  std::atomic<std::uint32_t> max_usage_;
  [[no_unique_address]] Hooks hooks_;
};

}  // namespace carpool::pool
