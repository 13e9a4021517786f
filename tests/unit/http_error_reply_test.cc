// Unit tests of a Fault's error reply, metrics label and log line.
#include "proxy/http/error_reply.h"

#include <chrono>

#include "base/clock.h"
#include "base/utf8.h"
#include "tests/unit/http_support.h"

namespace carpool::proxy::http {
namespace {

constexpr std::string_view kVia = "carpool-1a2b3c4d";
constexpr WallTime kDate{std::chrono::seconds(784111777)};  // Sun, 06 Nov 1994 08:49:37 GMT

std::string reply(const Fault& fault, Version version = Version::http11, bool close = false, bool head = false) {
  std::string out;
  const std::uint16_t status = write_error_reply(
      out, fault,
      {.via_pseudonym = kVia, .client_version = version, .close = close, .head_request = head, .date = kDate});
  EXPECT_EQ(out.substr(0, 13), "HTTP/1.1 " + std::to_string(status) + " ");
  return out;
}

TEST(FaultReply, IsAWholeResponse) {
  EXPECT_EQ(reply({FaultKind::connect_refused, Side::upstream, "127.0.0.1:1: Connection refused"}),
            "HTTP/1.1 502 Bad Gateway\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Via: 1.1 carpool-1a2b3c4d\r\n"
            "Proxy-Status: carpool; error=connection_refused; details=\"127.0.0.1:1: Connection refused\"\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 61\r\n"
            "\r\n"
            "carpool: connection_refused: 127.0.0.1:1: Connection refused\n");
}

TEST(FaultReply, OfEveryKindIsReadAsOneMessage) {
  for (int kind = 0; kind <= static_cast<int>(FaultKind::internal); ++kind) {
    const std::string bytes = reply({static_cast<FaultKind>(kind), Side::self}, Version::http11, true);
    const Reading result = read_response(bytes);
    EXPECT_FALSE(result.fault) << bytes << result.detail;
    EXPECT_EQ(result.messages, 1U);
    EXPECT_NE(result.text.find("Proxy-Status: carpool; error="), std::string::npos);
    EXPECT_NE(result.text.find("Connection: close\r\n"), std::string::npos);
    const Reading head =
        read_response(reply({static_cast<FaultKind>(kind), Side::self}, Version::http11, true, true), {}, "HEAD");
    EXPECT_EQ(head.messages, 1U);
  }
}

TEST(FaultReply, AsksForCredentialsByItsChallenge) {
  Fault fault(FaultKind::not_authenticated, Side::self, "who");
  fault.challenge = "Proxy-Authenticate: Basic realm=\"a\"\r\nProxy-Authenticate: Bearer realm=\"a\"\r\n";
  const std::string bytes = reply(fault, Version::http11, true);
  EXPECT_EQ(bytes.substr(9, 33), "407 Proxy Authentication Required");
  EXPECT_NE(bytes.find("\r\n" + std::string(fault.challenge) + "Connection: close\r\n"), std::string::npos) << bytes;
  EXPECT_NE(bytes.find("error=http_request_denied"), std::string::npos);
}

TEST(FaultReply, StatesForHttp10WhetherTheConnectionStaysOpen) {
  const Fault fault(FaultKind::queue_full, Side::self);
  EXPECT_NE(reply(fault, Version::http10).find("Connection: keep-alive\r\n"), std::string::npos);
  EXPECT_EQ(reply(fault, Version::http11).find("Connection:"), std::string::npos);
  EXPECT_NE(reply(fault, Version::http10, true).find("Connection: close\r\n"), std::string::npos);
}

TEST(FaultReply, AsksToComeBackWhenThePoolIsFull) {
  for (const FaultKind kind :
       {FaultKind::queue_full, FaultKind::wait_timeout, FaultKind::origins_exhausted, FaultKind::budget}) {
    const std::string bytes = reply({kind, Side::self});
    EXPECT_EQ(bytes.substr(9, 3), "503");
    EXPECT_NE(bytes.find("\r\nRetry-After: 1\r\n"), std::string::npos);
  }
  EXPECT_EQ(reply({FaultKind::connect_refused, Side::upstream}).find("Retry-After"), std::string::npos);
  EXPECT_NE(reply({FaultKind::queue_full, Side::self}).find("details=\"wait queue full\""), std::string::npos);
  EXPECT_NE(reply({FaultKind::wait_timeout, Side::self}).find("details=\"wait timed out\""), std::string::npos);
}

TEST(FaultReply, LetsNoDetailBreakOutOfItsPlace) {
  const std::string bytes = reply({FaultKind::malformed_request, Side::client, "a\"b\\c\r\nX: y\x01\xE2\x80\xA6"});
  EXPECT_NE(bytes.find("details=\"a\\\"b\\\\c??X: y????\"\r\n"), std::string::npos) << bytes;
  EXPECT_EQ(read_response(bytes).messages, 1U);
  EXPECT_LT(reply({FaultKind::internal, Side::self, std::string(100000, 'x')}).size(), 2000U);
}

TEST(FaultReply, HasTheStatusesOfTheContract) {
  const std::vector<std::pair<FaultKind, int>> table = {
      {FaultKind::malformed_request, 400},
      {FaultKind::egress_denied, 403},
      {FaultKind::head_timeout, 408},
      {FaultKind::body_too_large, 413},
      {FaultKind::target_too_long, 414},
      {FaultKind::misdirected, 421},
      {FaultKind::head_too_large, 431},
      {FaultKind::not_implemented, 501},
      {FaultKind::dns_error, 502},
      {FaultKind::connect_refused, 502},
      {FaultKind::tls_certificate, 502},
      {FaultKind::parent_refused, 502},
      {FaultKind::connection_terminated, 502},
      {FaultKind::queue_full, 503},
      {FaultKind::connect_timeout, 504},
      {FaultKind::response_timeout, 504},
      {FaultKind::request_timeout, 504},
      {FaultKind::loop_detected, 508},
      {FaultKind::not_authenticated, 407},
      {FaultKind::internal, 500},
      {FaultKind::version_not_supported, 505},
      {FaultKind::informational_limit, 502},
  };
  for (const auto& [kind, status] : table) EXPECT_EQ(fault_status(kind).status, status) << fault_name(kind);
}

RequestHead request_of_type(std::string_view type, Version version = Version::http2) {
  RequestHead head;
  head.version = version;
  head.fields.add("content-type", type);
  return head;
}

TEST(GrpcReply, IsForRequestsOfGrpcAlone) {
  for (const auto* type : {"application/grpc", "application/grpc+proto", "Application/GRPC; charset=x"})
    EXPECT_TRUE(is_grpc(request_of_type(type))) << type;
  for (const auto* type :
       {"application/grpc-web", "application/grpc-web+proto", "application/json", "application/gr", ""})
    EXPECT_FALSE(is_grpc(request_of_type(type))) << type;
  EXPECT_FALSE(is_grpc(request_of_type("application/grpc", Version::http11)));
  EXPECT_FALSE(is_grpc(RequestHead()));
}

TEST(GrpcReply, IsAHeadWithStatus200AndTheCodeAndTheText) {
  std::string out;
  const Fault fault{FaultKind::connect_refused, Side::upstream, "127.0.0.1:1: 100% \xE2\x80\xA6\r\nX: y"};
  EXPECT_EQ(write_grpc_reply(out, fault, {.via_pseudonym = kVia, .date = kDate}), 502);
  EXPECT_EQ(out,
            "HTTP/1.1 200 OK\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Via: 1.1 carpool-1a2b3c4d\r\n"
            "Proxy-Status: carpool; error=connection_refused; details=\"127.0.0.1:1: 100% ?????X: y\"\r\n"
            "Content-Type: application/grpc\r\n"
            "grpc-status: 14\r\n"
            "grpc-message: carpool: connection_refused: 127.0.0.1:1: 100%25 %E2%80%A6%0D%0AX: y\r\n"
            "\r\n");
}

TEST(FaultReply, IsUtf8WhateverBytesAClientSentAndWhereverItsTextIsCut) {
  const auto body_of = [](const std::string& detail) {
    const std::string bytes = reply({FaultKind::malformed_request, Side::client, detail});
    return bytes.substr(bytes.find("\r\n\r\n") + 4);
  };
  EXPECT_EQ(body_of("the host `\xFF\xC3` of \xC3\xA9"), "carpool: http_request_error: the host `??` of \xC3\xA9\n");
  for (std::size_t before = 0; before < 4; ++before) {
    std::string detail(before, 'x');
    while (detail.size() < 400) detail += "\xE2\x82\xAC";
    const std::string body = body_of(detail);
    EXPECT_EQ(as_utf8(body, body.size()), body) << before;
    std::string grpc;
    write_grpc_reply(grpc, {FaultKind::malformed_request, Side::client, detail}, {.via_pseudonym = kVia});
    EXPECT_EQ(grpc.substr(grpc.size() - 13), "%E2%82%AC\r\n\r\n") << before;
  }
}

TEST(GrpcReply, OfEveryKindHasAnErrorAndIsBounded) {
  for (int kind = 0; kind <= static_cast<int>(FaultKind::internal); ++kind) {
    std::string out;
    write_grpc_reply(out, {static_cast<FaultKind>(kind), Side::self, std::string(100000, '%')},
                     {.via_pseudonym = kVia});
    EXPECT_EQ(read_response(out, {}, "HEAD").messages, 1U) << out;
    EXPECT_LT(out.size(), 2000U);
    EXPECT_NE(grpc_code({static_cast<FaultKind>(kind), Side::self}), 0);
  }
}

TEST(GrpcReply, IsUnavailableOnlyIfTheDeadlineWasNotThatOfASentRequest) {
  for (const FaultKind kind : {FaultKind::queue_full, FaultKind::wait_timeout, FaultKind::connect_refused,
                               FaultKind::draining, FaultKind::rate_limited, FaultKind::connect_timeout})
    EXPECT_EQ(grpc_code({kind, Side::self}), 14) << fault_name(kind);
  for (const FaultKind kind : {FaultKind::response_timeout, FaultKind::request_timeout})
    EXPECT_EQ(grpc_code({kind, Side::self}), 4) << fault_name(kind);
  EXPECT_EQ(grpc_code({FaultKind::egress_denied, Side::self}), 7);
  EXPECT_EQ(grpc_code({FaultKind::not_authenticated, Side::self}), 16);
}

TEST(GrpcReply, HasTheCodeOfItsFaultIfThatHasOne) {
  Fault fault{FaultKind::connection_terminated, Side::upstream};
  EXPECT_EQ(grpc_code(fault), 14);
  fault.grpc = 1;
  EXPECT_EQ(grpc_code(fault), 1);
  std::string out;
  EXPECT_EQ(write_grpc_reply(out, fault, {.via_pseudonym = kVia}), 502);
  EXPECT_NE(out.find("grpc-status: 1\r\n"), std::string::npos);
}

TEST(FaultReply, ToHeadHasTheLengthOfItsBodyAndNoBody) {
  const Fault fault(FaultKind::connect_refused, Side::upstream, "x");
  const std::string whole = reply(fault), head = reply(fault, Version::http11, false, true);
  EXPECT_EQ(head, whole.substr(0, whole.find("\r\n\r\n") + 4));
}

TEST(FaultReply, NamesATimeToComeBackWhereTheConditionPasses) {
  for (const FaultKind kind : {FaultKind::queue_full, FaultKind::rate_limited, FaultKind::draining}) {
    EXPECT_NE(reply({kind, Side::self}).find("\r\nRetry-After: "), std::string::npos) << fault_name(kind);
  }
  for (const FaultKind kind : {FaultKind::connect_refused, FaultKind::response_timeout, FaultKind::malformed_request}) {
    EXPECT_EQ(reply({kind, Side::self}).find("Retry-After"), std::string::npos) << fault_name(kind);
  }
}

}  // namespace
}  // namespace carpool::proxy::http
