// ObjectPool: a ready-to-use Pool for any object and any thread. It adds to the core:
//   - Handle, which returns the object when destroyed; discard() ends the object instead;
//   - acquire_or_make(): an idle object, or a new one while the cap allows; an exception from make() changes nothing;
//   - insert(): adds an object that was made elsewhere;
//   - hooks, each called once per handle and outside any compare-and-swap: on_acquire prepares the object and
//     may reject it (it ends, the next one is tried), on_release resets it, and a tracker observes all transitions;
//   - limits on uses, objects and users per object, all changeable while objects are lent.
// An object ends when `T{}` is moved into its entry, so T must own its resources (a unique_ptr, a handle). The features
// are those of Jetty's Pool, without weak references: a Handle always returns its object.
//
// `SearchHint::loop` is an affinity: a loop first gets the object that it returned last. An ObjectPool must outlive its
// handles.
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

// Hooks may declare any subset of these:
//   bool on_acquire(T&)   before the handle is returned; false or an exception: the object is unusable and ends
//   void on_release(T&)   before the object can be lent again; a shared object may be in use by others meanwhile
//   void lent(std::uint32_t place), returned(place), ended(place), terminated()    tracker; any thread, concurrently
struct NoHooks {};

template <class T, class Hooks = NoHooks>
class ObjectPool {
 public:
  struct Settings {
    std::uint32_t cap = 1;
    unsigned loops = 1;           // loops with an affinity of their own
    std::uint32_t multiplex = 1;  // users per object
    std::uint32_t max_usage = 0;  // uses of one object; 0: no limit
  };

  class [[nodiscard]] Handle {
   public:
    Handle() = default;
    Handle(Handle&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), entry_(other.entry_), reusable_(other.reusable_) {}
    Handle& operator=(Handle&& other) noexcept {
      Handle dies(std::move(*this));
      owner_ = std::exchange(other.owner_, nullptr);
      entry_ = other.entry_;
      reusable_ = other.reusable_;
      return *this;
    }
    ~Handle() { give_back(); }

    explicit operator bool() const { return owner_ != nullptr; }
    T& operator*() const { return entry_->value; }
    T* operator->() const { return &entry_->value; }
    // The position in the pool, from 0, as reported to the tracker and in the dump.
    std::uint32_t place() const { return entry_->place(); }
    // Uses of this object so far, this one included.
    std::uint32_t uses() const { return EntryWord(entry_->word.load(std::memory_order_relaxed)).uses(); }

    void give_back() {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->restore(*entry_, reusable_);
    }
    // The object is never lent again and ends with its last user.
    void discard() {
      reusable_ = false;
      give_back();
    }

   private:
    friend class ObjectPool;
    Handle(ObjectPool& owner, Entry<T>& entry) : owner_(&owner), entry_(&entry) {}
    ObjectPool* owner_ = nullptr;
    Entry<T>* entry_ = nullptr;
    bool reusable_ = false;  // false until the on_acquire hook accepted it
  };

  explicit ObjectPool(const Settings& settings, Hooks hooks = {})
      : pool_(settings.cap, settings.loops, settings.multiplex),
        max_usage_(settings.max_usage),
        hooks_(std::move(hooks)) {}
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;
  ~ObjectPool() {
    terminate();
    CARPOOL_ASSERT(pool_.in_use() == 0);  // a handle that outlived the pool would return its object to freed memory
  }

  // Returns an idle object, or an empty handle.
  Handle acquire(const SearchHint& where = {}) {
    for (;;) {
      const auto found = pool_.acquire(where, Matcher{max_usage_.load(std::memory_order_relaxed)});
      if (found.entry == nullptr) return {};
      if (found.taken) {
        if (Handle handle(*this, *found.entry); admit(handle)) return handle;
      } else if (pool_.close_idle(*found.entry, found.before)) {
        end(*found.entry);
      }
    }
  }

  // As acquire(), but if nothing is idle adds the optional<T> that make() returns. Returns an empty handle when the cap
  // is reached, when make() returned nothing, or after terminate().
  template <class Make>
  Handle acquire_or_make(const SearchHint& where, Make&& make) {
    if (Handle handle = acquire(where)) return handle;
    Entry<T>* entry = pool_.reserve();  // counts from here on, so that two threads cannot exceed the cap
    if (entry == nullptr) return {};
    Reserved place(*this, *entry);
    std::optional<T> made = make();
    if (!made || !place.fill(std::move(*made), where.loop, true)) return {};
    Handle handle(*this, *entry);
    return admit(handle) ? std::move(handle) : Handle();
  }

  // Adds an idle object that was made elsewhere. Returns false, with `object` unchanged, if the pool is full or
  // terminated.
  bool insert(T& object, LoopId home = 0) {
    Entry<T>* entry = pool_.reserve();
    if (entry == nullptr) return false;
    Reserved place(*this, *entry);
    if (place.fill(std::move(object), home, false)) return true;
    object = std::move(entry->value);
    return false;
  }

  // Stops lending. Idle objects end now, lent ones when they are returned.
  void terminate() {
    if (pool_.terminated()) return;
    if constexpr (requires(Hooks & hooks) { hooks.terminated(); }) hooks_.terminated();
    pool_.terminate([this](Entry<T>& entry) { end(entry); });
  }

  // ---- at run time ----
  void cap(std::uint32_t cap) { pool_.cap(cap); }
  std::uint32_t cap() const { return pool_.cap(); }
  std::uint32_t in_use() const { return pool_.in_use(); }
  // Applies to every object; a lent one is checked when it is returned. relaxed: a reader of the old limit allows one
  // more use.
  void max_usage(std::uint32_t max_usage) { max_usage_.store(max_usage, std::memory_order_relaxed); }
  // Sets how many users may share the object of this handle; current users continue.
  void share(const Handle& handle, std::uint32_t max_users) { pool_.share(*handle.entry_, max_users); }
  Hooks& hooks() { return hooks_; }

  // One line per object, for humans. The objects themselves are not printed: they may be in use.
  std::string dump() const { return dump_of(pool_); }
  Counts counts() const { return counts_of(pool_); }

 private:
  struct Matcher {
    std::uint32_t max_usage;
    Match operator()(const Entry<T>&, EntryWord word) const {
      if (max_usage == 0 || word.uses() < max_usage) return Match::take;
      return word.borrowed() ? Match::skip : Match::evict;  // its last user ends it
    }
  };

  // A reservation that is undone unless it was filled.
  class Reserved {
   public:
    Reserved(ObjectPool& owner, Entry<T>& entry) : owner_(owner), entry_(entry) {}
    Reserved(const Reserved&) = delete;
    Reserved& operator=(const Reserved&) = delete;
    ~Reserved() {
      if (filled_) return;
      entry_.value = T{};
      static_cast<void>(owner_.pool_.close(entry_));  // false: terminate() closed it first
      owner_.pool_.vacate(entry_);
    }
    bool fill(T&& object, LoopId home, bool lent) {
      entry_.value = std::move(object);
      return filled_ = owner_.pool_.enable(entry_, home, lent);
    }

   private:
    ObjectPool& owner_;
    Entry<T>& entry_;
    bool filled_ = false;
  };

  // On false or an exception the handle's destructor ends the object.
  bool admit(Handle& handle) {
    if constexpr (requires(Hooks & hooks, T & object) {
                    { hooks.on_acquire(object) } -> std::convertible_to<bool>;
                  }) {
      if (!hooks_.on_acquire(*handle)) return false;
    }
    handle.reusable_ = true;
    if constexpr (requires(Hooks & hooks) { hooks.lent(handle.place()); }) hooks_.lent(handle.place());
    return true;
  }

  void restore(Entry<T>& entry, bool reusable) {
    if (reusable) {
      if constexpr (requires(Hooks & hooks, T & object) { hooks.on_release(object); }) hooks_.on_release(entry.value);
      if constexpr (requires(Hooks & hooks) { hooks.returned(entry.place()); }) hooks_.returned(entry.place());
      const std::uint32_t max_usage = max_usage_.load(std::memory_order_relaxed);
      const bool used_up = max_usage != 0 && EntryWord(entry.word.load(std::memory_order_relaxed)).uses() >= max_usage;
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
