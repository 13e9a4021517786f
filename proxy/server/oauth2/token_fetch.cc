#include "proxy/server/oauth2/token_fetch.h"

#include <utility>

#include "proxy/config/secret.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/exchange_context.h"
#include "proxy/exchange/exchange_pool.h"
#include "proxy/http/error_reply.h"
#include "proxy/server/oauth2/token_reply.h"
#include "proxy/server/oauth2/token_request.h"

namespace carpool::proxy {

void TokenFetch::start(const config::OAuth2& settings, const config::TokenUrl& url, std::string_view secret) {
  CARPOOL_ASSERT(exchange_ == nullptr);
  status_ = 0;
  config::wipe(body_);
  fault_.reset();
  sent_ = false;
  exchange_ = &context_.exchanges.take();
  std::string body = write_token_request(exchange_->request(), settings, url, secret);
  exchange_->begin(*this);
  sent_ = true;
  // Each call may end the exchange.
  if (exchange_ != nullptr) exchange_->on_request_body(body);
  if (exchange_ != nullptr) exchange_->on_request_end();
  if (exchange_ != nullptr) exchange_->pump();
  config::wipe(body);
}

void TokenFetch::cancel() {
  if (exchange_ != nullptr) exchange_->on_client_gone();
  unlink();
}

bool TokenFetch::send_head(const http::ResponseHead& head, bool close) {
  status_ = head.status;
  return close;
}

// An answer that is too long ends the exchange at its next flush().
void TokenFetch::send_body(std::string_view bytes) {
  if (fault_) return;
  if (body_.size() + bytes.size() <= kLongestTokenReply) {
    body_.append(bytes);
    return;
  }
  fault_ = Fault{FaultKind::malformed_response, Side::self, "the token endpoint answered with too many bytes"};
}

std::uint16_t TokenFetch::send_fault(const Fault& fault, bool) {
  fault_ = Fault{fault.kind, Side::self, "the token endpoint: " + fault.detail};
  return http::fault_status(fault.kind).status;
}

void TokenFetch::on_exchange_end(AfterExchange next) {
  context_.exchanges.give_back(*std::exchange(exchange_, nullptr));
  const bool whole = next == AfterExchange::keep || next == AfterExchange::close;
  if (!whole && !fault_) {
    fault_ = Fault{FaultKind::response_incomplete, Side::self, "the token endpoint's answer is incomplete"};
  }
  context_.loop.defer(*this);
}

}  // namespace carpool::proxy
