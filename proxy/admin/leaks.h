// What is told of leases that were lost, or are held for too long, with the borrower who has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proxy/admin/answer.h"

namespace carpool::proxy::admin {

// Who has a connection. Texts are for a person; credentials in a target are masked.
struct BorrowerFacts {
  std::uint64_t connection = 0;
  std::string request;                   // "GET http://a.example/x"
  std::string phase;                     // what the exchange is doing
  std::string client;                    // its address
  std::optional<std::int64_t> pid, uid;  // of a client on a Unix socket, by SO_PEERCRED
  std::string trace_id;                  // of its traceparent; empty: it sent none
  Duration held{};
  std::uint64_t bytes_in = 0, bytes_out = 0;  // of the bodies so far
};

enum class LeakKind : std::uint8_t {
  held,  // longer than leak_timeout
  lost,  // its lease died without being given back
};

struct LeakFacts {
  std::uint64_t id = 0;
  LeakKind kind = LeakKind::held;
  std::string origin;
  std::string action;  // "report" or "discard"
  Instant found{};
  std::optional<Duration> returned_after;  // the borrow's whole length, once it ended
  BorrowerFacts borrower;
};

// "GET http://a.example/x of 127.0.0.1:5000 (pid 7, uid 1000), receiving the response body"
std::string borrower_text(const BorrowerFacts& borrower);
Answer leaks_answer(std::vector<LeakFacts> leaks, Instant now);

}  // namespace carpool::proxy::admin
