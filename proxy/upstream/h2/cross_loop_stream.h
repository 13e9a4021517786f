// RemoteStream: a stream of an HTTP/2 session that lives on another loop. The near half is the exchange's carrier, the
// far half uses an H2Carrier beside the session; between them go two parcels by mail, one each way.
//
// A parcel is filled while its twin travels and sent as soon as it is back, so one letter carries all that gathered
// meanwhile, nothing is allocated in steady state and nothing is locked. Whoever receives a parcel keeps it while it
// has no room for more: that is the back-pressure. The bytes in it are its own. The lease stays on the near side until
// the far one said that it is done with the stream, so that the session outlives every letter that names it; a stream
// that was left by its exchange is not used again before that either, so that no late letter meets another request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/mail.h"
#include "proxy/http/h2/fields.h"
#include "proxy/upstream/h2/loop_context.h"
#include "proxy/upstream/h2/stream.h"
#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

class H2Connection;

class RemoteStream final : public Carrier, private CarrierUser, public ListHook<struct RemoteStreamTag> {
 public:
  RemoteStream(SessionHost& near, SessionHost& far);

  // ---- near: the exchange's loop ----
  void begin(H2Connection& connection, CarrierUser& user, http::ResponseHead& response) LOOP_ONLY;
  bool usable() override LOOP_ONLY { return true; }  // only the far loop knows; what is wrong is told
  void send_head(const http::RequestHead& head, const http::ForwardRules& rules) override LOOP_ONLY;
  void send_body(std::string_view bytes) override LOOP_ONLY { next_order_.body.append(bytes); }
  void send_end(const http::Fields& trailers) override LOOP_ONLY;
  bool flush() override LOOP_ONLY;
  std::size_t backlog() const override LOOP_ONLY { return next_order_.body.size() + travelling_; }
  AttemptState read_on() override LOOP_ONLY;
  std::optional<pool::Closed> finish(pool::Lease& lease) override LOOP_ONLY;
  std::optional<pool::Closed> abandon(pool::Closed cause, pool::Lease& lease) override LOOP_ONLY;

 private:
  struct Order {  // towards the origin
    http::H2Fields head;
    std::string body;
    http::Fields trailers;
    bool has_head = false, bodyless = false, head_request = false, at_ease = false;
    bool end = false;
    bool empty() const { return !has_head && body.empty() && !end; }
    void clear();
  };
  struct Report {  // towards the exchange
    std::vector<http::ResponseHead> heads;
    std::string body;
    http::Fields trailers;
    bool end = false;
    bool done = false;     // the far half touches nothing of the stream any more
    bool at_ease = false;  // on its way back: the client is
    std::optional<Breakage> breakage;
    bool empty() const { return heads.empty() && body.empty() && !end && !done; }
    void clear();
  };
  struct Cancel {};  // the exchange left; passes an order that the far half keeps
  template <class Content>
  struct Parcel final : exec::Mail {
    explicit Parcel(RemoteStream& stream) : owner(stream) {}
    void arrive() override {
      exec::assume_on_loop();
      owner.arrived(*this);
    }
    RemoteStream& owner;
    Content content;
    bool outward = true;  // full, on its way to who reads it; else empty, on its way back
    bool home = true;     // written where it is filled
  };
  void arrived(Parcel<Order>& parcel) LOOP_ONLY;
  void arrived(Parcel<Report>& parcel) LOOP_ONLY;
  void arrived(Parcel<Cancel>& parcel) LOOP_ONLY;

  // near
  void read_report() LOOP_ONLY;
  AttemptState tell(Report& report) LOOP_ONLY;
  void give_report_back() LOOP_ONLY;
  void rest_if_done() LOOP_ONLY;

  // far: the session's loop
  void follow(Order& order) LOOP_ONLY;
  void give_order_back() LOOP_ONLY;
  void send_report() LOOP_ONLY;
  void done() LOOP_ONLY;
  void called_off() LOOP_ONLY;
  bool may_take() const override LOOP_ONLY;
  bool at_ease() const override LOOP_ONLY { return at_ease_; }
  AttemptState on_response_head() override LOOP_ONLY;
  void on_body(std::string_view bytes) override { next_report_.body.append(bytes); }
  void on_trailer(std::string_view name, std::string_view value) override { next_report_.trailers.add(name, value); }
  AttemptState on_response_piece() override LOOP_ONLY;
  AttemptState on_response_end() override LOOP_ONLY;
  AttemptState on_broken(Breakage breakage) override LOOP_ONLY;
  AttemptState on_room() override LOOP_ONLY;
  AttemptState on_switched(std::string_view) override LOOP_ONLY { return AttemptState::alive; }  // never on HTTP/2
  AttemptState on_tunnel_eof() override LOOP_ONLY { return AttemptState::alive; }

  SessionHost& near_;
  SessionHost& far_;
  H2Connection* connection_ = nullptr;
  Parcel<Order> order_{*this};
  Parcel<Report> report_{*this};
  Parcel<Cancel> cancel_{*this};

  // near
  CarrierUser* user_ = nullptr;  // while the exchange wants to know
  http::ResponseHead* response_ = nullptr;
  pool::Lease lease_;  // of an exchange that left before the far half was done
  Order next_order_;
  std::size_t travelling_ = 0;  // bytes of body in the parcel that is not home
  bool report_kept_ = false;    // the report is here, read, and not given back: the client has no room
  bool far_done_ = false;

  // far
  http::ResponseHead head_;
  H2Carrier carrier_;
  Report next_report_;
  bool order_kept_ = false;    // followed, and not given back: the session has no room
  bool carrying_ = false;      // carrier_ has begun
  bool at_ease_ = false;       // the client was, when it was last heard of
  bool far_finished_ = false;  // and has ended, or never will begin
};

}  // namespace carpool::proxy
