// Plan: one history of the data plane as data: the clients, their requests, and what the origin does with each attempt.
// A seed chooses the order of events and the size of each piece. A plan prints as a script that replays it, and
// shrinks by leaving elements out.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace carpool::test {

enum class AnswerEnd : std::uint8_t { whole, fin, reset, surplus };
inline constexpr std::uint32_t kAnswerEnds = 4;

// AnswerPlan: what the origin does with one attempt of a request.
struct AnswerPlan {
  std::uint32_t status = 200;        // 0: none, the connection ends at once
  std::uint32_t informational = 0;   // heads with 103 before it
  std::uint32_t framing = 0;         // of the body: 0 Content-Length, 1 chunked, 2 until close
  std::uint32_t size = 0;            // of the body
  std::uint32_t early = 0;           // 1: before the request's body was received
  AnswerEnd end = AnswerEnd::whole;  // what follows; fin and reset: in place of the last byte
  std::uint32_t rogue = 0;           // HTTP/2: so many bytes of DATA before the final head
};

struct RequestPlan {
  std::uint32_t method = 0;  // an index of kMethods
  std::uint32_t origin = 0;
  std::uint32_t size = 0;  // of the body
  std::uint32_t chunked = 0;
  std::uint32_t gives_up = 0;  // HTTP/2: a reset once so many bytes less one of the response were received; 0: none
  std::vector<AnswerPlan> answers;  // by attempt; later attempts are answered in order
};
inline constexpr const char* kMethods[] = {"GET", "POST", "HEAD", "PUT", "CONNECT", "GET"};
inline constexpr std::uint32_t kMethodCount = 6;
// Tunnels, of HTTP/1.1 clients. `size`: of the client's bytes; `chunked`: CONNECT's follow its head at once, and an
// upgrade has a body; `gives_up`: the client's FIN follows them, otherwise that of the origin.
inline constexpr std::uint32_t kConnect = 4, kUpgrade = 5;

struct ClientPlan {
  std::uint32_t loop = 0;
  std::uint32_t pipelines = 0;
  std::uint32_t leaves_after = 0;  // bytes sent, then a reset; 0: it stays
  std::uint32_t h2 = 0;            // speaks HTTP/2; then `pipelines`: streams at once, less one
  std::uint32_t window = 0;        // of its streams; 0: the protocol's
  std::uint32_t pieces = 0;        // a header block is sent in pieces of so many bytes; 0: in one
  std::uint32_t goaway = 0;        // follows its last request
  std::vector<RequestPlan> requests;
};

struct Plan {
  std::uint64_t seed = 1;
  // orders: of the operator, one in so many steps by chance; 0: none. h2: the first so many origins speak HTTP/2; room:
  // bytes in flight; failing: percent of the dials.
  std::uint32_t loops = 1, origins = 1, h2 = 0, size = 1, room = 65536, failing = 0, orders = 0;
  std::vector<ClientPlan> clients;
};

inline std::string script_of(const Plan& plan) {
  std::ostringstream out;
  out << "plan " << plan.seed << ' ' << plan.loops << ' ' << plan.origins << ' ' << plan.h2 << ' ' << plan.size << ' '
      << plan.room << ' ' << plan.failing << ' ' << plan.orders << '\n';
  for (const ClientPlan& client : plan.clients) {
    out << "client " << client.loop << ' ' << client.pipelines << ' ' << client.leaves_after << ' ' << client.h2 << ' '
        << client.window << ' ' << client.pieces << ' ' << client.goaway << '\n';
    for (const RequestPlan& one : client.requests) {
      out << "request " << one.method << ' ' << one.origin << ' ' << one.size << ' ' << one.chunked << ' '
          << one.gives_up << '\n';
      for (const AnswerPlan& answer : one.answers) {
        out << "answer " << answer.status << ' ' << answer.informational << ' ' << answer.framing << ' ' << answer.size
            << ' ' << answer.early << ' ' << static_cast<unsigned>(answer.end) << ' ' << answer.rogue << '\n';
      }
    }
  }
  return out.str();
}

inline Plan plan_of(std::istream& script) {
  Plan plan;
  for (std::string word; script >> word;) {
    if (word == "plan") {
      script >> plan.seed >> plan.loops >> plan.origins >> plan.h2 >> plan.size >> plan.room >> plan.failing >>
          plan.orders;
    } else if (word == "client") {
      ClientPlan& client = plan.clients.emplace_back();
      script >> client.loop >> client.pipelines >> client.leaves_after >> client.h2 >> client.window >> client.pieces >>
          client.goaway;
    } else if (word == "request") {
      RequestPlan& one = plan.clients.back().requests.emplace_back();
      script >> one.method >> one.origin >> one.size >> one.chunked >> one.gives_up;
    } else if (word == "answer") {
      AnswerPlan& answer = plan.clients.back().requests.back().answers.emplace_back();
      unsigned end = 0;
      script >> answer.status >> answer.informational >> answer.framing >> answer.size >> answer.early >> end >>
          answer.rogue;
      answer.end = static_cast<AnswerEnd>(end % kAnswerEnds);
    }
  }
  return plan;
}

}  // namespace carpool::test
