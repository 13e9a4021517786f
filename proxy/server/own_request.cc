#include "proxy/server/own_request.h"

#include <chrono>
#include <utility>

#include "proxy/config/secret.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/http/error_reply.h"
#include "proxy/http/retry_after.h"

namespace carpool::proxy {

namespace {
constexpr std::size_t kPiece = std::size_t{64} * 1024;  // bytes of a body passed to the exchange in one call
}

http::RequestHead& OwnRequest::prepare() {
  CARPOOL_ASSERT(exchange_ == nullptr);
  status_ = 0;
  config::wipe(body_);
  fault_.reset();
  retry_after_.reset();
  sent_ = false;
  exchange_ = &context_.exchanges.acquire();
  exchange_->request().clear();
  return exchange_->request();
}

void OwnRequest::send(std::string_view first, std::string_view rest) {
  rest_ = rest;
  exchange_->begin(*this);
  // Each of these calls may end the exchange.
  if (exchange_ != nullptr) exchange_->on_request_body(first);
  feed();
}

void OwnRequest::feed() {
  while (exchange_ != nullptr && !rest_.empty() && exchange_->wants_input()) {
    const std::string_view piece = rest_.substr(0, kPiece);
    rest_.remove_prefix(piece.size());
    exchange_->on_request_body(piece);
    if (exchange_ != nullptr && !rest_.empty()) exchange_->pump();
  }
  if (exchange_ == nullptr || !rest_.empty() || std::exchange(sent_, true)) return;
  exchange_->on_request_end();
  if (exchange_ != nullptr) exchange_->pump();
}

void OwnRequest::resume() {
  if (!sent_) context_.loop.defer(*this);
}

void OwnRequest::run() {
  exchange_ != nullptr ? feed() : ended_();
}

void OwnRequest::cancel() {
  if (exchange_ != nullptr) exchange_->on_client_gone();
  unlink();
}

bool OwnRequest::send_head(const http::ResponseHead& head, bool close) {
  status_ = head.status;
  const auto now = std::chrono::system_clock::now();
  retry_after_ = http::retry_after(head.fields, std::chrono::time_point_cast<std::chrono::seconds>(now));
  return close;
}

// A response that is too long ends the exchange at its next flush().
void OwnRequest::send_body(std::string_view bytes) {
  if (fault_) return;
  if (body_.size() + bytes.size() <= kind_.max_response) {
    body_.append(bytes);
    return;
  }
  fault_ = Fault{FaultKind::malformed_response, Side::self,
                 std::string(kind_.endpoint).append(" answered with too many bytes")};
}

std::uint16_t OwnRequest::send_fault(const Fault& fault, bool) {
  fault_ = Fault{fault.kind, Side::self, std::string(kind_.endpoint).append(": ").append(fault.detail)};
  return http::fault_status(fault.kind).status;
}

void OwnRequest::on_exchange_end(AfterExchange next) {
  context_.exchanges.give_back(*std::exchange(exchange_, nullptr));
  const bool whole = next == AfterExchange::keep || next == AfterExchange::close;
  if (!whole && !fault_) {
    fault_ = Fault{FaultKind::response_incomplete, Side::self,
                   std::string(kind_.endpoint).append("'s response is incomplete")};
  }
  context_.loop.defer(*this);
}

}  // namespace carpool::proxy
