// Unit tests of allocations in proxy/http: in steady state a message allocates nothing, because heads and buffers are
// reused.
#include <atomic>
#include <cstdlib>
#include <new>

#include "proxy/http/forward.h"
#include "tests/unit/http_support.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CARPOOL_COUNT_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CARPOOL_COUNT_ALLOCATIONS 0
#endif
#endif
#ifndef CARPOOL_COUNT_ALLOCATIONS
#define CARPOOL_COUNT_ALLOCATIONS 1
#endif

namespace {
std::atomic<std::uint64_t> allocations{0};
}

#if CARPOOL_COUNT_ALLOCATIONS
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
#endif

namespace carpool::proxy::http {
namespace {

class Nowhere final : public BodySink {
 public:
  void on_body(std::string_view bytes) override { count += bytes.size(); }
  void on_trailer(std::string_view name, std::string_view value, bool /*sensitive*/) override {
    count += name.size() + value.size();
  }
  std::size_t count = 0;
};

// One exchange within proxy/http.
struct Exchange {
  void run(std::string_view request, std::string_view response) {
    reader.reset();
    drain(reader, request, request_head);
    const Result<Target> target = parse_target(request_head);
    ASSERT_TRUE(target);
    ForwardRules rules;
    rules.via_pseudonym = "carpool-1a2b3c4d";
    rules.host = target->authority;
    rules.path = target->path;
    out.clear();
    write_request(out, request_head, rules);
    back.expect(request_head.method, false);
    drain(back, response, response_head);
    ReplyRules reply;
    reply.via_pseudonym = rules.via_pseudonym;
    write_response(out, response_head, reply);
    write_chunk_head(out, 1000);
  }
  template <class Reader, class Head>
  void drain(Reader& from, std::string_view bytes, Head& head) {
    for (;;) {
      const Result<ParseResult> fed = from.feed(bytes.substr(0, piece), head, sink, &layouts);
      ASSERT_TRUE(fed);
      bytes.remove_prefix(fed->consumed);
      if (fed->progress == Progress::message) return;
    }
  }
  std::size_t piece = 7;  // small, so that names and values arrive in parts
  FieldLayouts layouts;
  RequestReader reader{Limits{}};
  ResponseReader back{Limits{}};
  RequestHead request_head;
  ResponseHead response_head;
  Nowhere sink;
  std::string out;
};

TEST(Message, AllocatesNothingInSteadyState) {
  if (!CARPOOL_COUNT_ALLOCATIONS) GTEST_SKIP() << "the sanitizer owns operator new";
  constexpr std::string_view kRequest =
      "POST http://a.test:8080/a/path/that/is/long?and=a%20query HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\n"
      "Connection: x-hop\r\nX-Hop: 1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n";
  constexpr std::string_view kResponse =
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 A reason of more than fifteen bytes\r\n"
      "Server: x\r\nContent-Length: 5\r\n\r\nhello";
  Exchange exchange;
  exchange.run(kRequest, kResponse);
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 10; ++i) exchange.run(kRequest, kResponse);
  EXPECT_EQ(allocations.load(), before);
}

TEST(Message, WithKnownLayoutsAllocatesNothing) {
  if (!CARPOOL_COUNT_ALLOCATIONS) GTEST_SKIP() << "the sanitizer owns operator new";
  constexpr std::string_view kRequest =
      "GET http://a.test:8080/ HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\nUser-Agent: a client\r\n\r\n";
  constexpr std::string_view kResponse = "HTTP/1.1 200 OK\r\nServer: an origin\r\nContent-Length: 5\r\n\r\nhello";
  Exchange exchange;
  exchange.piece = 4096;
  for (int i = 0; i < 3; ++i) exchange.run(kRequest, kResponse);
  const std::uint64_t before = allocations.load();
  for (int i = 0; i < 10; ++i) exchange.run(kRequest, kResponse);
  EXPECT_EQ(allocations.load(), before);
}

}  // namespace
}  // namespace carpool::proxy::http
