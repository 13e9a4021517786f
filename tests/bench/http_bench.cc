// http_bench: the cost of a request in proxy/http: parsing its head, resolving its target, serializing both heads.
#include <benchmark/benchmark.h>

#include "proxy/http/forward.h"
#include "proxy/http/h1/codec.h"

namespace carpool::proxy::http {
namespace {

constexpr std::string_view kRequest =
    "GET http://api.internal:8080/v1/users/4711?fields=name,mail HTTP/1.1\r\n"
    "Host: api.internal:8080\r\n"
    "User-Agent: python-requests/2.31.0\r\n"
    "Accept-Encoding: gzip, deflate, br\r\n"
    "Accept: */*\r\n"
    "Connection: keep-alive\r\n"
    "Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"
    "X-Request-Id: 4bf92f3577b34da6a3ce929d0e0e4736\r\n"
    "Cookie: session=0123456789abcdef; theme=dark\r\n"
    "\r\n";
constexpr std::string_view kResponse =
    "HTTP/1.1 200 OK\r\n"
    "Server: nginx/1.22.1\r\n"
    "Date: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
    "Content-Type: application/json; charset=utf-8\r\n"
    "Content-Length: 1024\r\n"
    "Connection: keep-alive\r\n"
    "ETag: \"0123456789abcdef\"\r\n"
    "Cache-Control: max-age=60\r\n"
    "Vary: Accept-Encoding\r\n"
    "\r\n";

class Nowhere final : public BodySink {
 public:
  void on_body(std::string_view bytes) override { benchmark::DoNotOptimize(bytes.data()); }
  void on_trailer(std::string_view name, std::string_view /*value*/, bool /*sensitive*/) override {
    benchmark::DoNotOptimize(name.data());
  }
};

void read_request(benchmark::State& state) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Nowhere sink;
  for (auto _ : state) {
    reader.reset();
    benchmark::DoNotOptimize(reader.feed(kRequest, head, sink));
    benchmark::DoNotOptimize(reader.feed({}, head, sink));
  }
}
BENCHMARK(read_request);

void read_response(benchmark::State& state) {
  ResponseReader reader{Limits{}};
  ResponseHead head;
  Nowhere sink;
  for (auto _ : state) {
    reader.expect("GET", false);
    benchmark::DoNotOptimize(reader.feed(kResponse, head, sink));
  }
}
BENCHMARK(read_response);

void find_target(benchmark::State& state) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Nowhere sink;
  benchmark::DoNotOptimize(reader.feed(kRequest, head, sink));
  for (auto _ : state) benchmark::DoNotOptimize(parse_target(head));
}
BENCHMARK(find_target);

void send_request(benchmark::State& state) {
  RequestReader reader{Limits{}};
  RequestHead head;
  Nowhere sink;
  benchmark::DoNotOptimize(reader.feed(kRequest, head, sink));
  ForwardRules rules;
  rules.via_pseudonym = "carpool-1a2b3c4d";
  rules.host = "api.internal:8080";
  rules.path = "/v1/users/4711?fields=name,mail";
  std::string out;
  for (auto _ : state) {
    out.clear();
    write_request(out, head, rules);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(send_request);

void send_response(benchmark::State& state) {
  ResponseReader reader{Limits{}};
  reader.expect("GET", false);
  ResponseHead head;
  Nowhere sink;
  benchmark::DoNotOptimize(reader.feed(kResponse, head, sink));
  ReplyRules rules;
  rules.via_pseudonym = "carpool-1a2b3c4d";
  std::string out;
  for (auto _ : state) {
    out.clear();
    write_response(out, head, rules);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(send_response);

// A body of 64 KiB in chunks of 4 KiB.
void read_chunks(benchmark::State& state) {
  std::string bytes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::size_t head_size = bytes.size();
  for (int i = 0; i < 16; ++i) bytes.append("1000\r\n").append(4096, 'x').append("\r\n");
  bytes.append("0\r\n\r\n");
  ResponseReader reader{Limits{}};
  ResponseHead head;
  Nowhere sink;
  for (auto _ : state) {
    reader.expect("GET", false);
    benchmark::DoNotOptimize(reader.feed(bytes, head, sink));
    benchmark::DoNotOptimize(reader.feed(std::string_view(bytes).substr(head_size), head, sink));
  }
}
BENCHMARK(read_chunks);

}  // namespace
}  // namespace carpool::proxy::http

BENCHMARK_MAIN();
