// H2Stream: one stream of a session as its owner sees it: the queue of body bytes that are not in frames yet, and the
// user that receives its events. Created and freed by the session; invalid after on_closed(), and for its owner after
// reset() or leave().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fault.h"
#include "base/intrusive.h"
#include "proxy/http/h2/types.h"
#include "proxy/http/informational.h"
#include "proxy/http/message.h"
#include "proxy/http/message_order.h"

namespace carpool::proxy::http {

// H2StreamUser: called while the session receives or sends; the views are valid during the call. It may call any
// function of the session but must not destroy it.
class H2StreamUser {
 public:
  // Clients: a 1xx or the final head, which may be swapped out. With Framing::none no body follows, but on_end() does.
  virtual void on_head(ResponseHead& head) = 0;
  virtual void on_body(std::string_view bytes) = 0;    // return the window with consume()
  virtual void on_trailers(const Fields& fields) = 0;  // on_end() follows
  virtual void on_end() = 0;                           // the peer's message is complete
  virtual void on_sent(std::size_t bytes) = 0;         // this many bytes of the queue went into frames
  virtual void on_closed(H2Error error) = 0;           // the last call; may come before both sides ended

 protected:
  ~H2StreamUser() = default;
};

class H2Fields;

// H2StreamValues: what a recycled record resets; its queue and its trailers keep their memory.
struct H2StreamValues {
  H2StreamUser* user_ = nullptr;
  StreamId id_ = 0;
  Instant opened_{};            // servers
  std::size_t sent_ = 0;        // bytes of queue_
  std::size_t moved_ = 0;       // bytes sent in this pull and not yet reported
  std::size_t unconsumed_ = 0;  // bytes received and not yet returned to the window
  std::uint32_t window_ = 0;    // the receive window, as announced to the peer
  std::uint32_t widen_to_ = 0;  // pending until the request's head is sent; the library has no window before
  std::uint32_t returned_ = 0;  // bytes returned to the window and not yet announced
  std::uint32_t heads_ = 0;     // servers: heads queued and not yet in frames
  std::optional<H2Error> cut_;  // servers: the reset that follows the queue
  MessageOrder incoming_;       // the peer's message
  Informational informational_;
  const char* violation_ = nullptr;
  FaultKind violation_kind_ = FaultKind::malformed_response;
  bool head_request_ = false;
  bool grpc_request_ = false;
  bool connect_ = false;     // servers: CONNECT, plain or extended
  bool peer_ended_ = false;  // END_STREAM was received
  bool ended_ = false;       // our end is queued
  bool end_sent_ = false;
  bool responded_ = false;   // our head is queued
  bool idle_ = false;        // the library waits for resume
  bool reset_ = false;       // by this side
  bool head_begun_ = false;  // clients
  bool head_sent_ = false;
  bool never_sent_ = false;  // no byte of it was sent
  bool detached_ = false;    // detached by its owner
  bool dead_ = false;        // the library has released it
};

class H2Stream : public ListHook<struct H2StreamTag>,
                 public ListHook<struct H2SentTag>,
                 public ListHook<struct H2WaitingTag>,
                 private H2StreamValues {
 public:
  StreamId id() const { return id_; }
  // Returns the number of bytes that wait for the windows or the socket.
  std::size_t backlog() const { return queue_.size() - sent_; }
  bool head_begun() const { return head_begun_; }  // clients: the first frame of the request's head is out
  bool end_sent() const { return end_sent_; }      // our END_STREAM is in a frame
  bool never_sent() const { return never_sent_; }  // the peer has not seen the request and never will
  // Returns the rule that the peer violated, for which this side reset the stream; nullptr: none.
  const char* violation() const { return violation_; }
  FaultKind violation_kind() const { return violation_kind_; }
  void set_user(H2StreamUser* user) { user_ = user; }
  bool head_request() const { return head_request_; }  // HEAD, also in a refused head
  bool grpc_request() const { return grpc_request_; }  // servers: of a refused head

 private:
  friend class H2Session;
  friend struct H2Impl;
  std::string queue_;
  std::unique_ptr<H2Fields> head_;  // servers: the response head, while it waits for the library's memory
  Fields trailers_;                 // sent once the queue is empty
};

}  // namespace carpool::proxy::http
