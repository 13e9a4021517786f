// PlanMutator: makes one change to a plan: to a number, or it leaves out, repeats or adds an element.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/sim/data_plane/plan.h"

namespace carpool::fuzz {

class PlanMutator {
 public:
  explicit PlanMutator(unsigned seed) : random_(seed) {}

  void mutate(test::Plan& plan) {
    switch (pick(10)) {
      case 0:
        plan.seed = random_();
        return;
      case 1:
        return number(plan);
      case 2:
      case 3:
      case 4:
        return element(plan.noise);
      default:
        break;
    }
    if (plan.clients.empty() || pick(8) == 0) return element(plan.clients);
    test::ClientPlan& client = one_of(plan.clients);
    if (pick(6) == 0) return number(client);
    if (client.requests.empty() || pick(8) == 0) return element(client.requests);
    test::RequestPlan& request = one_of(client.requests);
    pick(2) == 0 ? number(request) : element(request.responses);
  }

 private:
  std::uint32_t pick(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  template <class One>
  One& one_of(std::vector<One>& list) {
    return list[pick(static_cast<std::uint32_t>(list.size()))];
  }
  template <class One>
  void element(std::vector<One>& list) {
    const std::uint32_t kind = pick(8);
    if (list.empty() || kind == 0) {
      list.emplace_back();
      number(list.back());
    } else if (kind == 1) {
      list.erase(list.begin() + pick(static_cast<std::uint32_t>(list.size())));
    } else if (kind == 2) {
      const One copy = one_of(list);
      list.push_back(copy);
    } else {
      number(one_of(list));
    }
  }
  template <class One>
  void number(One& one) {
    std::vector<std::uint32_t*> numbers;
    each_number(one, [&numbers](std::uint32_t& number) { numbers.push_back(&number); });
    std::uint32_t& chosen = *one_of(numbers);
    constexpr std::array<std::uint32_t, 12> kUsual{0, 1, 2, 3, 9, 10, 13, 32, 255, 4096, 16384, 65535};
    switch (pick(5)) {
      case 0:
        chosen = kUsual[pick(kUsual.size())];
        return;
      case 1:
        chosen += pick(2) == 0 ? 1U : UINT32_MAX;
        return;
      case 2:
        chosen ^= 1U << pick(8);
        return;
      case 3:
        chosen = pick(300);
        return;
      default:
        chosen = pick(40'000);
    }
  }

  std::mt19937 random_;
};

}  // namespace carpool::fuzz
