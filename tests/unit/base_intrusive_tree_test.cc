// Unit tests of IntrusiveTree: its order, its searches, and their cost in comparisons.
#include "base/intrusive_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace carpool {
namespace {

struct Greatest {
  std::uint64_t value = 0;
};
struct Node : TreeHook<struct Tag, Greatest> {
  std::uint64_t key = 0, id = 0, value = 0;
};
struct Counting {
  using Summary = Greatest;
  bool before(const Node& one, const Node& other) const {
    ++*comparisons;
    return one.key < other.key;
  }
  static std::uint64_t number(const Node& node) { return node.id; }
  static Greatest summary(const Node& node) { return {node.value}; }
  static Greatest join(Greatest one, Greatest other) { return {std::max(one.value, other.value)}; }
  std::uint64_t* comparisons;
};
using Nodes = Tree<Node, Tag, Counting>;

class ATree : public testing::Test {
 protected:
  ~ATree() override {
    while (Node* first = tree.first()) tree.erase(*first);
  }
  Node& added(std::uint64_t key, std::uint64_t value = 0) {
    Node& node = nodes.emplace_back();
    node.key = key;
    node.id = nodes.size();
    node.value = value;
    tree.insert(node);
    return node;
  }
  std::vector<std::uint64_t> keys() const {
    std::vector<std::uint64_t> all;
    for (Node* at = tree.first(); at != nullptr; at = tree.next(*at)) all.push_back(at->key);
    return all;
  }
  std::uint64_t comparisons = 0;
  Nodes tree{Counting{&comparisons}};
  std::deque<Node> nodes;
};

TEST_F(ATree, KeepsItsNodesInOrderAndEqualOnesAsTheyCame) {
  Node& second = added(2);
  Node& first = added(1);
  Node& third = added(2);
  EXPECT_EQ(tree.first(), &first);
  EXPECT_EQ(tree.next(first), &second);
  EXPECT_EQ(tree.next(second), &third);
  EXPECT_EQ(tree.next(third), nullptr);
  EXPECT_EQ(tree.last(), &third);
  EXPECT_EQ(tree.previous(third), &second);
  EXPECT_EQ(tree.previous(first), nullptr);
}

TEST_F(ATree, IsAMultisetWhateverJoinsAndLeaves) {
  std::mt19937_64 random(1);
  std::multiset<std::uint64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 3 != 0 || model.empty()) {
      model.insert(added(random() % 100, random() % 1000).key);
    } else {
      Node& leaving = nodes[random() % nodes.size()];
      if (!leaving.linked()) continue;
      tree.erase(leaving);
      model.erase(model.find(leaving.key));
    }
    if (step % 500 != 0) continue;
    EXPECT_EQ(keys(), std::vector<std::uint64_t>(model.begin(), model.end()));
    std::uint64_t greatest = 0;
    for (const Node& node : nodes) greatest = node.linked() ? std::max(greatest, node.value) : greatest;
    EXPECT_EQ(tree.summary().value, greatest);
  }
}

TEST_F(ATree, FindsTheFirstNodeThatFits) {
  for (std::uint64_t key = 0; key < 1000; ++key) added(key, key * 7 % 1000);
  for (std::uint64_t least : {1ULL, 500ULL, 993ULL, 999ULL}) {
    const auto model = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.value >= least; });
    EXPECT_EQ(tree.first_fit([&](Greatest set) { return set.value >= least; }), &*model);
    const auto after = std::find_if(model + 1, nodes.end(), [&](const Node& node) { return node.value >= least; });
    EXPECT_EQ(tree.first_fit([&](Greatest set) { return set.value >= least; }, &*model),
              after == nodes.end() ? nullptr : &*after);
  }
  EXPECT_EQ(tree.first_fit([&](Greatest set) { return set.value > 999; }), nullptr);
}

TEST_F(ATree, FindsTheLastNodeThatIsNotBeyond) {
  for (const std::uint64_t key : {10U, 20U, 30U}) added(key);
  const auto last_not = [&](std::uint64_t most) {
    return tree.last_not([&](const Node& node) { return node.key > most; });
  };
  EXPECT_EQ(last_not(9), nullptr);
  EXPECT_EQ(last_not(10)->key, 10U);
  EXPECT_EQ(last_not(29)->key, 20U);
  EXPECT_EQ(last_not(99)->key, 30U);
}

// A queue of 20,000 into which borrowers are inserted at the front, at the end, or anywhere.
TEST_F(ATree, OfTwentyThousandTakesAFewDozenComparisonsToJoin) {
  std::mt19937_64 random(2);
  constexpr std::uint64_t kMany = 20'000, kMax = 64;  // log2 is 14.3, a random tree is about twice as deep
  std::uint64_t most = 0, all = 0;
  for (std::uint64_t n = 0; n < 3 * kMany; ++n) {
    const std::uint64_t kinds[] = {kMany - n / 3, kMany + n, random() % kMany};
    comparisons = 0;
    added(kinds[n % 3]);
    most = std::max(most, comparisons);
    all += comparisons;
  }
  EXPECT_LE(most, kMax);
  EXPECT_LE(all, 3 * kMany * 32);
  comparisons = 0;
  for (std::uint64_t n = 0; n < kMany; ++n) tree.erase(nodes[n]);
  EXPECT_EQ(comparisons, 0U) << "who leaves knows where it is";
}

}  // namespace
}  // namespace carpool
