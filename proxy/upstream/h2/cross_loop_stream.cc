#include "proxy/upstream/h2/cross_loop_stream.h"

#include <utility>

#include "proxy/net/write_queue.h"
#include "proxy/upstream/h2/connection.h"

namespace carpool::proxy {

namespace {
// Of a stream that rests: it may have carried much.
constexpr std::size_t kModest = 4096;
void shrink(std::string& body) {
  if (body.capacity() > kModest) std::string().swap(body);
}
}  // namespace

void RemoteStream::Order::clear() {
  head.clear();
  body.clear();
  trailers.clear();
  has_head = bodyless = head_request = at_ease = end = false;
}

void RemoteStream::Report::clear() {
  heads.clear();
  body.clear();
  trailers.clear();
  end = done = at_ease = false;
  breakage.reset();
}

RemoteStream::RemoteStream(SessionHost& near, SessionHost& far) : near_(near), far_(far), carrier_(far, *this, head_) {}

// ---- near: what the exchange says ----

void RemoteStream::begin(H2Connection& connection, CarrierUser& user, http::ResponseHead& response) {
  CARPOOL_ASSERT(user_ == nullptr && order_.home && report_.home && cancel_.home && !carrying_);
  connection_ = &connection;
  user_ = &user;
  response_ = &response;
  far_done_ = report_kept_ = order_kept_ = far_finished_ = false;  // no letter is under way: both halves are ours
  travelling_ = 0;
}

void RemoteStream::send_head(const http::RequestHead& head, const http::ForwardRules& rules) {
  http::h2_request(next_order_.head, head, rules, {connection_->scheme(), {}});
  next_order_.has_head = true;
  next_order_.bodyless =
      head.framing == http::Framing::none || (head.framing == http::Framing::length && head.length == 0);
  next_order_.head_request = head.method == "HEAD";
  next_order_.at_ease = user_->at_ease();
}

void RemoteStream::send_end(const http::Fields& trailers) {
  next_order_.trailers = trailers;
  next_order_.end = true;
}

bool RemoteStream::flush() {
  if (!order_.home || next_order_.empty()) return !next_order_.empty();
  std::swap(order_.content, next_order_);
  next_order_.clear();
  travelling_ = order_.content.body.size();
  order_.home = false;
  order_.outward = true;
  far_.loop().post(order_);
  return true;
}

void RemoteStream::arrived(Parcel<Order>& parcel) {
  exec::assume_on_loop();
  if (parcel.outward) return follow(parcel.content);
  parcel.home = true;
  travelling_ = 0;
  if (far_done_) return rest_if_done();
  flush();
  if (user_ != nullptr) static_cast<void>(user_->on_room());
}

// ---- near: what the far half reports ----

void RemoteStream::arrived(Parcel<Report>& parcel) {
  exec::assume_on_loop();
  if (parcel.outward) return read_report();
  parcel.home = true;
  at_ease_ = parcel.content.at_ease;
  if (carrying_)
    static_cast<void>(carrier_.read_on());  // before the next one goes: what was kept from the window is given back now
  send_report();
}

AttemptState RemoteStream::tell(Report& report) {
  for (http::ResponseHead& head : report.heads) {
    std::swap(*response_, head);
    if (user_->on_response_head() == AttemptState::over) return AttemptState::over;
  }
  if (!report.body.empty()) user_->on_body(report.body);
  for (std::size_t i = 0; i < report.trailers.size(); ++i) {
    user_->on_trailer(report.trailers[i].name, report.trailers[i].value);
  }
  if (report.breakage) return user_->on_broken(std::move(*report.breakage));
  return report.end ? user_->on_response_end() : user_->on_response_piece();
}

void RemoteStream::read_report() {
  Report& report = report_.content;
  far_done_ = report.done;
  report_kept_ = true;
  // Not taken again before rest_if_done(), which this function calls last: it still belongs to the attempt that ended.
  const bool over = user_ == nullptr || tell(report) == AttemptState::over;
  if (!report_kept_) return;
  if (far_done_) return rest_if_done();
  if (over || user_->may_take()) return give_report_back();
  report.body.clear();  // told, and kept for who knows how long
  shrink(report.body);
}

void RemoteStream::give_report_back() {
  if (!std::exchange(report_kept_, false)) return;
  report_.content.clear();
  report_.content.at_ease = user_ != nullptr && user_->at_ease();
  report_.outward = false;
  far_.loop().post(report_);
}

AttemptState RemoteStream::read_on() {
  if (user_->may_take() && !far_done_) give_report_back();
  return AttemptState::alive;
}

// ---- near: the end ----

std::optional<pool::Closed> RemoteStream::finish(pool::Lease& lease) {
  return abandon(pool::Closed::error, lease);
}

std::optional<pool::Closed> RemoteStream::abandon(pool::Closed, pool::Lease& lease) {
  user_ = nullptr;
  response_ = nullptr;
  if (far_done_) return std::nullopt;  // read_report() goes on to put this to rest
  lease_ = std::move(lease);
  next_order_.clear();
  cancel_.home = false;
  cancel_.outward = true;
  far_.loop().post(cancel_);
  give_report_back();
  return std::nullopt;
}

void RemoteStream::arrived(Parcel<Cancel>& parcel) {
  exec::assume_on_loop();
  if (parcel.outward) return called_off();
  parcel.home = true;
  rest_if_done();
}

// All letters are here and the far half has let go.
void RemoteStream::rest_if_done() {
  if (!far_done_ || !order_.home || !cancel_.home || user_ != nullptr) return;
  report_kept_ = false;
  report_.content.clear();
  report_.home = true;
  next_order_.clear();
  for (std::string* body : {&next_order_.body, &order_.content.body, &report_.content.body, &next_report_.body}) {
    shrink(*body);
  }
  if (lease_) lease_.release(near_.loop().now());
  near_.recycle(*this, far_.loop().id());
}

}  // namespace carpool::proxy
