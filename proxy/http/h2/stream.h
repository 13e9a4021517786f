// H2Stream: one stream of a session, as its owner holds it: a queue of body bytes that no frame took yet, and who wants
// to know what comes. Made and freed by the session; gone after on_closed(), and for its owner after reset() or
// leave().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fault.h"
#include "base/intrusive.h"
#include "proxy/http/h2/types.h"
#include "proxy/http/informational.h"
#include "proxy/http/message.h"
#include "proxy/http/message_order.h"

namespace carpool::proxy::http {

// Told while the session receives or sends; the views are valid during the call. May give any command to the session,
// but never destroy it.
class H2StreamUser {
 public:
  // Clients: 1xx and the final head. May be swapped out. Framing::none: no body follows, and on_end() does.
  virtual void on_head(ResponseHead& head) = 0;
  virtual void on_body(std::string_view bytes) = 0;    // give the room back by consume(), when it is yours to give
  virtual void on_trailers(const Fields& fields) = 0;  // on_end() follows
  virtual void on_end() = 0;                           // the peer said all it has to say
  virtual void on_sent(std::size_t bytes) = 0;         // so many bytes of the queue went into frames
  virtual void on_closed(H2Error error) = 0;           // before both sides ended, or after; the last call

 protected:
  ~H2StreamUser() = default;
};

class H2Stream : public ListHook<struct H2StreamTag>, public ListHook<struct H2MovedTag> {
 public:
  StreamId id() const { return id_; }
  // Bytes that wait for windows and for the socket.
  std::size_t backlog() const { return queue_.size() - sent_; }
  bool peer_ended() const { return peer_ended_; }
  bool head_sent() const { return head_sent_; }    // clients: the request's head went into frames
  bool never_sent() const { return never_sent_; }  // and never will: the peer knows nothing of the request
  // The rule that the peer's message broke, and which made this side reset the stream; null: it broke none.
  const char* wrong() const { return wrong_; }
  FaultKind wrong_kind() const { return wrong_kind_; }
  void set_user(H2StreamUser* user) { user_ = user; }

 private:
  friend class H2Session;
  friend struct H2Impl;
  H2StreamUser* user_ = nullptr;
  StreamId id_ = 0;
  std::string queue_;
  std::size_t sent_ = 0;        // of queue_
  std::size_t moved_ = 0;       // in this pull, not yet told
  std::size_t unconsumed_ = 0;  // received, room not yet given back
  std::uint32_t window_ = 0;    // clients: what the peer may send ahead, as it was told
  std::uint32_t widen_to_ = 0;  // once the request's head is out; the library knows no window before
  std::uint32_t returned_ = 0;  // room that is the peer's again, and not yet said
  std::uint32_t heads_ = 0;     // servers: queued, and not yet in frames
  std::optional<H2Error> cut_;  // servers: the reset that follows the queue
  Fields trailers_;             // to send, once the queue is empty
  MessageOrder incoming_;       // the peer's message
  Informational informational_;
  const char* wrong_ = nullptr;
  FaultKind wrong_kind_ = FaultKind::malformed_response;
  bool head_request_ = false;
  bool peer_ended_ = false;  // END_STREAM came
  bool ended_ = false;       // our end is queued
  bool end_sent_ = false;
  bool responded_ = false;  // our head is queued
  bool idle_ = false;       // the library waits for resume
  bool reset_ = false;      // by us
  bool head_sent_ = false;
  bool never_sent_ = false;  // no byte of it left
  bool left_alone_ = false;  // its owner left
  bool dead_ = false;        // the library knows it no more
};

}  // namespace carpool::proxy::http
