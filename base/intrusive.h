// List: an intrusive doubly linked list: insertion allocates nothing, and a node's destructor removes it.
#pragma once

#include <cstddef>

#include "base/assert.h"

namespace carpool {

// A node belongs to at most one list per Tag. Not thread-safe: the lock of the list also guards its nodes.
template <class Tag = void>
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class G>
  friend class List;
  ListHook* next_ = nullptr;
  ListHook* prev_ = nullptr;
};

// T must derive from ListHook<Tag>.
template <class T, class Tag = void>
class List {
 public:
  List() { root_.next_ = root_.prev_ = &root_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty()) pop_front();
    root_.next_ = root_.prev_ = nullptr;
  }

  bool empty() const { return root_.next_ == &root_; }
  T& front() {
    CARPOOL_ASSERT(!empty());
    // Never a destroyed node and never null: a node's destructor unlinks it, which the analyzer does not follow.
    T* const first = static_cast<T*>(root_.next_);
    return *first;  // NOLINT(clang-analyzer-cplusplus.NewDelete,clang-analyzer-core.uninitialized.UndefReturn)
  }
  const T& front() const {
    CARPOOL_ASSERT(!empty());
    return *static_cast<const T*>(root_.next_);
  }
  T& pop_front() {
    T& node = front();
    static_cast<ListHook<Tag>&>(node).unlink();
    return node;
  }
  void push_back(T& node) { insert(node, root_.prev_, &root_); }
  void push_front(T& node) { insert(node, &root_, root_.next_); }

  // For range loops. The body may unlink the node that it visits, and no other one.
  class Iterator {
   public:
    T& operator*() const { return *static_cast<T*>(at_); }
    Iterator& operator++() {
      at_ = next_;
      next_ = at_->next_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    friend class List;
    explicit Iterator(ListHook<Tag>* at) : at_(at), next_(at->next_) {}
    ListHook<Tag>* at_;
    ListHook<Tag>* next_;
  };
  Iterator begin() { return Iterator(root_.next_); }
  Iterator end() { return Iterator(&root_); }

  // Returns the node after `node` (null: the first), or nullptr at the end.
  T* next(T* node) {
    ListHook<Tag>* after = node == nullptr ? root_.next_ : static_cast<ListHook<Tag>*>(node)->next_;
    return after == &root_ ? nullptr : static_cast<T*>(after);  // NOLINT(clang-analyzer-cplusplus.NewDelete)
  }
  // Returns the node before `node` (null: the last), or nullptr at the beginning.
  T* previous(T* node) {
    ListHook<Tag>* before = node == nullptr ? root_.prev_ : static_cast<ListHook<Tag>*>(node)->prev_;
    return before == &root_ ? nullptr : static_cast<T*>(before);
  }
  // Returns nullptr if the list is empty.
  T* last() { return empty() ? nullptr : static_cast<T*>(root_.prev_); }
  // Moves all nodes of `other`, in order, to the end.
  void splice_back(List& other) {
    while (!other.empty()) push_back(other.pop_front());
  }

 private:
  using Hook = ListHook<Tag>;
  static void insert(T& node, Hook* before, Hook* after) {
    Hook& hook = node;
    CARPOOL_ASSERT(!hook.linked());
    hook.prev_ = before;
    hook.next_ = after;
    before->next_ = &hook;
    after->prev_ = &hook;
  }
  Hook root_;
};

}  // namespace carpool
