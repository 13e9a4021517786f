#include "proxy/commands/webhook/session.h"

#include <algorithm>
#include <utility>

#include "proxy/http/error_reply.h"
#include "proxy/http/http_date.h"

namespace carpool::proxy {
namespace {

// A review contains the object and, for an update, its previous version. The API server limits each to 1.5 MiB.
constexpr std::size_t kMaxReview = std::size_t{4} * 1024 * 1024;
constexpr LocalHttpSession::Bounds kBounds{
    {16 * 1024, 100, 8 * 1024}, 0, std::chrono::seconds(5), std::chrono::seconds(30)};

}  // namespace

WebhookSession::WebhookSession(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream)
    : owner_(owner), http_(loop, *this, std::move(stream), kBounds, this) {}

WebhookSession::~WebhookSession() = default;

void WebhookSession::on_head() {
  owner_.mark_waiting(*this);
  const http::RequestHead& head = http_.request().head();
  if (!head.expect_continue || head.framing == http::Framing::none) return;
  WriteBatch out;
  out.text().append("HTTP/1.1 100 Continue\r\n\r\n");
  http_.send(out);
}

// A body that is too long is read to its end, so that the client reads the error response.
void WebhookSession::on_body(std::string_view bytes) {
  exec::assume_on_loop();
  too_long_ = too_long_ || body_.size() + bytes.size() > kMaxReview;
  if (too_long_) return free_body();
  make_room(body_.size() + bytes.size());
  body_.append(bytes);
}

// The memory doubles, up to that of the longest review. All of it counts, whatever part of it is in use.
void WebhookSession::make_room(std::size_t size) {
  if (size <= held_) return;
  const std::size_t wanted = std::min(std::max(size, 2 * held_), kMaxReview);
  owner_.hold(*this, wanted - held_);
  held_ = wanted;
  std::string larger;  // reserve() of a string with bytes may take more
  larger.reserve(wanted);
  larger.append(body_);
  body_.swap(larger);
}

// An idle session holds no memory for a body.
void WebhookSession::free_body() {
  owner_.release(std::exchange(held_, 0));
  std::string().swap(body_);  // an assignment would keep the memory
}

void WebhookSession::on_request() {
  const http::RequestHead& head = http_.request().head();
  if (!head.keep_alive || owner_.stopping()) http_.close_when_sent();
  const bool too_long = std::exchange(too_long_, false);
  const Response response = too_long ? Response{413, "application/json", R"({"error": "the review is too long"})"}
                                     : owner_.respond(head, body_);
  free_body();
  if (!send(response)) return;
  http_.done_with_request();
  http_.restart_timer();
  owner_.mark_waiting(*this);
}

void WebhookSession::on_malformed(const Fault& fault) {
  WriteBatch out;
  const bool head = http_.request().head().has_method("HEAD");
  const auto now = std::chrono::system_clock::now();
  http::write_error_reply(out.text(), fault,
                          {.via_pseudonym = "carpool", .close = true, .head_request = head, .date = now});
  http_.send(out);
}

bool WebhookSession::send(const Response& response) {
  WriteBatch out;
  std::string& text = out.text();
  text.append("HTTP/1.1 ").append(std::to_string(response.status)).append(response.status == 200 ? " OK" : " Refused");
  text.append("\r\nDate: ").append(http::date_text(std::chrono::system_clock::now()));
  if (!response.allow.empty()) text.append("\r\nAllow: ").append(response.allow);
  text.append("\r\nContent-Type: ").append(response.content_type);
  text.append("\r\nContent-Length: ").append(std::to_string(response.body.size()));
  text.append(http_.closes_when_sent() ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n");
  if (!http_.request().head().has_method("HEAD")) out.add(response.body);
  return http_.send(out);
}

void WebhookSession::on_end() {
  free_body();
  http_.transport().shut_write();
  owner_.ended(*this);
}

}  // namespace carpool::proxy
