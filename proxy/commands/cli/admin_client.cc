#include "proxy/commands/cli/admin_client.h"

#include <array>
#include <utility>

#include "proxy/http/h1/codec.h"

namespace carpool::proxy::cli {

namespace {
constexpr std::size_t kMaxResponse = std::size_t{256} * 1024 * 1024;  // 65,535 connections are about 40 MiB

Fault no_response(const Instance& instance, const std::string& why) {
  const std::string source = instance.named_by.empty() ? "" : " ([admin] address of " + instance.named_by + ")";
  return {FaultKind::connect_refused, Side::upstream, "no answer from " + instance.address + source + ": " + why};
}

// A long response is chunked; its last chunk proves that it is complete.
Result<Reply> read_reply(const Instance& instance, AdminStream& stream, std::string_view method) {
  http::ResponseReader reader({});
  reader.expect(method, false);
  http::ResponseHead head;
  http::BodyText body;
  const auto reply = [&] { return Reply{head.status, std::move(body.text)}; };
  std::array<char, 16384> piece;
  for (;;) {
    const Result<std::size_t> received = stream.receive(piece);
    if (!received) return no_response(instance, received.fault().detail);
    if (*received == 0) {
      if (reader.finish()) return reply();
      if (reader.any_byte()) return no_response(instance, "the response is incomplete");
      // An instance with TLS closes a connection that begins in plain text.
      const char* const hint = instance.trust ? "" : "; with TLS the address is https://HOST:PORT";
      return no_response(instance, std::string("the connection was closed") + hint);
    }
    http::Progress progress = http::Progress::head;
    for (std::string_view bytes(piece.data(), *received); progress == http::Progress::head;) {
      const Result<http::ParseResult> fed = reader.feed(bytes, head, body);
      if (!fed) return no_response(instance, "the response is not HTTP");
      bytes.remove_prefix(fed->consumed);
      progress = fed->progress;
    }
    if (progress == http::Progress::message) return reply();
    if (body.text.size() > kMaxResponse) return no_response(instance, "the response is too long");
  }
}
}  // namespace

Result<Reply> ask(const Instance& instance, std::string_view method, std::string_view target) {
  Result<AdminStream> stream = AdminStream::open(instance.address, instance.trust, instance.timeout_seconds);
  // The text names the address.
  if (!stream && stream.fault().kind == FaultKind::malformed_request) return stream.fault();
  if (!stream) {
    const bool distrusted = stream.fault().kind == FaultKind::tls_certificate;
    return no_response(instance, stream.fault().detail + (distrusted ? "; --cacert FILE names its authorities" : ""));
  }
  std::string question(method);
  question.append(" ").append(target).append(" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
  if (!instance.token.empty()) question.append("Authorization: Bearer ").append(instance.token).append("\r\n");
  if (const Status sent = stream->send(question + "\r\n"); !sent) return no_response(instance, sent.fault().detail);
  if (instance.response_seconds != 0) stream->set_timeout(instance.response_seconds);
  return read_reply(instance, *stream, method);
}

}  // namespace carpool::proxy::cli
