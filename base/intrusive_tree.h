// Tree: an intrusive ordered tree: insertion allocates nothing; insertion, removal and search take O(log n) steps.
//
// It is a treap: nodes are ordered by Order::before(), and each has a higher priority than its children. The priority
// is a hash of Order::number() and the tree's address, which is unknown outside, so the expected depth is that of a
// random tree for any input. Each node keeps a summary of its subtree, so that searches skip subtrees that do not fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.h"

namespace carpool {

// A node belongs to at most one tree per Tag and must be removed before it is destroyed. Not thread-safe: the lock of
// the tree also guards its nodes.
template <class Tag, class Summary>
class TreeHook {
 public:
  TreeHook() = default;
  TreeHook(const TreeHook&) = delete;
  TreeHook& operator=(const TreeHook&) = delete;
  ~TreeHook() { CARPOOL_ASSERT(!linked()); }

  bool linked() const { return linked_; }

 private:
  template <class T, class G, class O>
  friend class Tree;
  TreeHook* parent_ = nullptr;
  TreeHook* left_ = nullptr;
  TreeHook* right_ = nullptr;
  Summary summary_{};
  bool linked_ = false;
};

// The summary of a tree that is searched by order only.
struct NoSummary {};

// T must derive from TreeHook<Tag, Order::Summary>. Order defines, for two different nodes:
//   bool before(const T&, const T&)           a strict order
//   std::uint64_t number(const T&)            constant while the node is in the tree
//   Summary summary(const T&), Summary join(Summary, Summary)   of one node, and of two sets of nodes
template <class T, class Tag, class Order>
class Tree {
 public:
  using Summary = typename Order::Summary;
  explicit Tree(Order order = Order()) : order_(order) {}
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { CARPOOL_ASSERT(empty()); }

  bool empty() const { return root_ == nullptr; }

  // Equal nodes keep their order of insertion.
  void insert(T& node) {
    Hook& hook = node;
    CARPOOL_ASSERT(!hook.linked_);
    Hook* parent = nullptr;
    Hook** place = &root_;
    while (*place != nullptr) {
      parent = *place;
      place = order_.before(node, of(*parent)) ? &parent->left_ : &parent->right_;
    }
    *place = &hook;
    hook.parent_ = parent;
    hook.linked_ = true;
    hook.summary_ = order_.summary(node);
    while (hook.parent_ != nullptr && outranks(hook, *hook.parent_)) rotate_up(hook);
    refresh_upwards(&hook);
  }

  void erase(T& node) {
    Hook& hook = node;
    CARPOOL_ASSERT(hook.linked_);
    while (hook.left_ != nullptr && hook.right_ != nullptr) {
      rotate_up(outranks(*hook.left_, *hook.right_) ? *hook.left_ : *hook.right_);
    }
    Hook* child = hook.left_ != nullptr ? hook.left_ : hook.right_;
    if (child != nullptr) child->parent_ = hook.parent_;
    place_of(hook) = child;
    Hook* parent = hook.parent_;
    hook.parent_ = hook.left_ = hook.right_ = nullptr;
    hook.linked_ = false;
    refresh_upwards(parent);
  }

  T* first() const { return edge(&Hook::left_); }
  T* last() const { return edge(&Hook::right_); }
  T* next(T& node) const { return neighbour(node, &Hook::left_, &Hook::right_); }
  T* previous(T& node) const { return neighbour(node, &Hook::right_, &Hook::left_); }

  // Returns the last node for which beyond(node) is false; beyond must be false for a prefix of the order and true for
  // the rest.
  template <class Beyond>
  T* last_not(Beyond&& beyond) const {
    T* found = nullptr;
    for (Hook* at = root_; at != nullptr;) {
      T& node = of(*at);
      if (beyond(node)) {
        at = at->left_;
      } else {
        found = &node;
        at = at->right_;
      }
    }
    return found;
  }

  // Returns the first node after `after` (null: of all) that fits. fits(summary) must be true for a set if it is for
  // one of its nodes.
  template <class Fits>
  T* first_fit(Fits&& fits, T* after = nullptr) const {
    if (after == nullptr) return fit_below(root_, fits);
    Hook* at = after;
    if (T* found = fit_below(at->right_, fits)) return found;
    for (; at->parent_ != nullptr; at = at->parent_) {
      if (at->parent_->left_ != at) continue;
      if (fits(order_.summary(of(*at->parent_)))) return &of(*at->parent_);
      if (T* found = fit_below(at->parent_->right_, fits)) return found;
    }
    return nullptr;
  }

  // The summary of all nodes; of an empty tree: Summary().
  Summary summary() const { return root_ == nullptr ? Summary() : root_->summary_; }

 private:
  using Hook = TreeHook<Tag, Summary>;
  static T& of(Hook& hook) { return static_cast<T&>(hook); }

  std::uint64_t priority(Hook& hook) const {  // splitmix64
    std::uint64_t number = order_.number(of(hook)) ^ reinterpret_cast<std::uintptr_t>(this);
    number += 0x9E3779B97F4A7C15ULL;
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9ULL;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBULL;
    return number ^ (number >> 31);
  }
  bool outranks(Hook& one, Hook& other) const { return priority(one) > priority(other); }
  Hook*& place_of(Hook& hook) {
    if (hook.parent_ == nullptr) return root_;
    return hook.parent_->left_ == &hook ? hook.parent_->left_ : hook.parent_->right_;
  }
  void refresh(Hook& hook) {
    hook.summary_ = order_.summary(of(hook));
    if (hook.left_ != nullptr) hook.summary_ = order_.join(hook.left_->summary_, hook.summary_);
    if (hook.right_ != nullptr) hook.summary_ = order_.join(hook.summary_, hook.right_->summary_);
  }
  void refresh_upwards(Hook* hook) {
    for (; hook != nullptr; hook = hook->parent_) refresh(*hook);
  }

  void rotate_up(Hook& child) {
    Hook& parent = *child.parent_;
    Hook*& place = place_of(parent);
    const bool is_left = parent.left_ == &child;
    Hook*& inner = is_left ? child.right_ : child.left_;
    (is_left ? parent.left_ : parent.right_) = inner;
    if (inner != nullptr) inner->parent_ = &parent;
    inner = &parent;
    child.parent_ = parent.parent_;
    place = &child;
    parent.parent_ = &child;
    refresh(parent);
    refresh(child);
  }

  T* edge(Hook* Hook::*side) const {
    Hook* at = root_;
    while (at != nullptr && at->*side != nullptr) at = at->*side;
    return at == nullptr ? nullptr : &of(*at);
  }
  T* neighbour(T& node, Hook* Hook::*back, Hook* Hook::*forth) const {
    Hook* at = &static_cast<Hook&>(node);
    if (at->*forth != nullptr) {
      for (at = at->*forth; at->*back != nullptr;) at = at->*back;
      return &of(*at);
    }
    while (at->parent_ != nullptr && at->parent_->*forth == at) at = at->parent_;
    return at->parent_ == nullptr ? nullptr : &of(*at->parent_);
  }

  template <class Fits>
  T* fit_below(Hook* at, Fits&& fits) const {
    while (at != nullptr && fits(at->summary_)) {
      if (at->left_ != nullptr && fits(at->left_->summary_)) {
        at = at->left_;
      } else if (fits(order_.summary(of(*at)))) {
        return &of(*at);
      } else {
        at = at->right_;
      }
    }
    return nullptr;
  }

  [[no_unique_address]] Order order_;
  Hook* root_ = nullptr;
};

}  // namespace carpool
