// LazyOrder: the items of a list in order, one at a time. It is made in O(n) and each item costs O(log n), so the first
// few of many cost no sort.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace carpool {

template <class Item, class Before>
class LazyOrder {
 public:
  // Does not allocate.
  LazyOrder(std::vector<Item> items, Before before) : items_(std::move(items)), before_(std::move(before)) {
    std::make_heap(items_.begin(), items_.end(), after());
  }

  bool empty() const { return items_.empty(); }
  const Item& first() const { return items_.front(); }
  void remove_first() {
    std::pop_heap(items_.begin(), items_.end(), after());
    items_.pop_back();
  }

 private:
  auto after() const {
    return [this](const Item& one, const Item& other) { return before_(other, one); };
  }

  std::vector<Item> items_;
  Before before_;
};

}  // namespace carpool
