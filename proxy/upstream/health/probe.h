// Probe: one exchange of the health check on an idle connection: a safe request. Any complete response proves that the
// connection is alive. The probe holds a lease like any borrower. A response that the origin sent before it received
// the request is not the probe's: the next one on that connection would go to a client, so the connection is closed.
#pragma once

#include <string>
#include <string_view>

#include "exec/loop.h"
#include "pool/destination/lease.h"
#include "proxy/http/h1/codec.h"
#include "proxy/net/write_queue.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/connection_events.h"

namespace carpool::proxy {

struct UpstreamContext;
struct OriginRuntime;

class Probe final : public ListHook<struct ProbeTag>, private ConnectionEvents, private http::BodySink {
 public:
  class Owner {
   public:
    // Called when the probe is over and its lease released; the owner destroys it. `why`: the error of the connection;
    // empty if it is alive.
    virtual void probed(Probe& probe, std::string_view why) LOOP_ONLY = 0;

   protected:
    ~Owner() = default;
  };

  Probe(const UpstreamContext& context, Owner& owner, const OriginRuntime& origin, pool::Lease lease);
  void start() LOOP_ONLY;                      // may call the owner before it returns
  void end(pool::CloseCause cause) LOOP_ONLY;  // ends the probe without calling the owner
  std::uint64_t connection_id() const { return connection_id_; }
  const OriginRuntime& origin() const { return origin_; }

 private:
  void on_upstream_ready() override LOOP_ONLY;
  bool silent() LOOP_ONLY;
  void write_line(std::string& out) const;
  bool receive(std::string_view bytes) LOOP_ONLY;
  void on_io_end(const net::IoResult& io) LOOP_ONLY;
  void finish(bool whole) LOOP_ONLY;
  void out_of_step() LOOP_ONLY;
  void fail(std::string_view why) LOOP_ONLY;
  void on_timeout();
  void on_body(std::string_view bytes) override { body_bytes_ += bytes.size(); }
  void on_trailer(std::string_view, std::string_view, bool) override {}
  Connection& connection() const { return static_cast<Connection&>(*lease_); }

  const UpstreamContext& context_;
  Owner& owner_;
  const OriginRuntime& origin_;
  pool::Lease lease_;
  const std::uint64_t connection_id_;
  http::ResponseReader reader_;
  http::ResponseHead head_;
  WriteQueue write_queue_;
  exec::Timer timer_;
  std::size_t body_bytes_ = 0;
  bool head_seen_ = false;  // of the response, 1xx included
};

}  // namespace carpool::proxy
