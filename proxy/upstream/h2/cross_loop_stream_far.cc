// The far half of a RemoteStream: beside the session, it does what the orders say and reports what comes of it.
#include <utility>

#include "proxy/net/write_queue.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/h2/cross_loop_stream.h"

namespace carpool::proxy {

namespace {
// What may gather while a report is away, for a client at ease. What comes beyond it stays in the stream's window:
// whoever does not read holds the origin, not memory on two loops.
constexpr std::size_t kGathered = std::size_t{16} * 1024;
}  // namespace

void RemoteStream::follow(Order& order) {
  order_kept_ = true;
  if (order.has_head && !far_finished_) {
    carrying_ = true;
    at_ease_ = order.at_ease;
    carrier_.begin(*connection_);
    carrier_.send_fields(order.head, order.bodyless, order.head_request);
  }
  if (carrying_) {
    carrier_.send_body(order.body);
    if (order.end) carrier_.send_end(order.trailers);
    carrier_.flush();
    if (carrier_.backlog() >= kHighMark) return;  // on_room() gives it back
  }
  give_order_back();
}

void RemoteStream::called_off() {
  if (!far_finished_) {
    pool::Lease none;
    if (carrying_) carrier_.abandon(pool::Closed::error, none);
    next_report_.clear();
    done();
  }
  cancel_.outward = false;
  near_.loop().post(cancel_);
}

void RemoteStream::give_order_back() {
  if (!std::exchange(order_kept_, false)) return;
  order_.content.clear();
  order_.outward = false;
  near_.loop().post(order_);
}

void RemoteStream::send_report() {
  if (!report_.home || next_report_.empty()) return;
  std::swap(report_.content, next_report_);
  next_report_.clear();
  report_.home = false;
  report_.outward = true;
  near_.loop().post(report_);
}

void RemoteStream::done() {
  carrying_ = false;
  far_finished_ = true;
  next_report_.done = true;
  give_order_back();
  send_report();
}

bool RemoteStream::may_take() const {
  return report_.home || (at_ease_ && next_report_.body.size() < kGathered);
}

AttemptState RemoteStream::on_response_head() {
  next_report_.heads.push_back(std::exchange(head_, {}));
  return AttemptState::alive;
}

AttemptState RemoteStream::on_response_piece() {
  send_report();
  return AttemptState::alive;
}

AttemptState RemoteStream::on_response_end() {
  pool::Lease none;
  carrier_.finish(none);
  next_report_.end = true;
  done();
  return AttemptState::over;
}

AttemptState RemoteStream::on_broken(Breakage breakage) {
  pool::Lease none;
  carrier_.abandon(pool::Closed::error, none);
  next_report_.breakage = std::move(breakage);
  done();
  return AttemptState::over;
}

AttemptState RemoteStream::on_room() {
  if (carrier_.backlog() < kHighMark) give_order_back();
  return AttemptState::alive;
}

}  // namespace carpool::proxy
