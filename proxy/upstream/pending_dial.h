// PendingDial: one dial and the pool entry that it fills, from the certificates to the connection: over HTTP/2 it ends
// with the origin's SETTINGS.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/intrusive_tree.h"
#include "proxy/net/dial.h"
#include "proxy/net/handshake_budget.h"
#include "proxy/upstream/connection.h"
#include "proxy/upstream/dial_state.h"
#include "proxy/upstream/h2/connection.h"
#include "proxy/upstream/pending_dial_owner.h"
#include "proxy/upstream/upstream_context.h"

namespace carpool::proxy {

class PendingDial final : public ListHook<AttemptTag>,
                          public TreeHook<AttemptSlotTag, NoSummary>,
                          public TreeHook<AttemptOrderTag, NoSummary>,
                          public net::DialOwner,
                          public exec::Mail,
                          private exec::Watcher {
 public:
  // Order of the dials of one Dialer: by destination, then by entry or by age. What it compares does not change.
  struct BySlot;
  struct ByAge;

  PendingDial(PendingDialOwner& owner, const UpstreamContext& context, dns::Resolver& resolver,
              net::HandshakeBudget& handshakes, pool::Destination& destination, OriginRuntime& origin,
              pool::Reservation reservation);
  ~PendingDial() { origin_.dials.fetch_sub(1, std::memory_order_relaxed); }

  const OriginRuntime& origin() const { return origin_; }
  std::string_view phase() const;

  // At pool.connect_rate the dial keeps its entry in the pool while it waits, so that the limit is kept and the next
  // available connection serves the first waiter.
  void start() LOOP_ONLY;

  // Stops waiting for the TLS context. Without effect if the message about it is already posted.
  void stop_waiting();

  // Destroys the dial, which is over and not in attempts_, or leaves that to its message, which is already posted.
  void destroy();
  void give_up() LOOP_ONLY;
  void fail(Fault fault) LOOP_ONLY;

 private:
  void enter(DialState state);
  void await_turn() LOOP_ONLY;  // for pool.connect_rate
  void on_turn();
  void load() LOOP_ONLY;

  // Reports the fault later, because start() must not call the pool.
  void fail_later(Fault fault) LOOP_ONLY;
  void mark_over();

  // The TLS context is loaded or failed to load.
  void arrive() override LOOP_ONLY;
  void never_arrives() override;
  void dial_now() LOOP_ONLY;
  std::string via_of_connect() const LOOP_ONLY;
  exec::Submitter* tasks_for_handshake() LOOP_ONLY;
  void on_dialed(Result<net::Dialed> result) override LOOP_ONLY;
  bool warming() const { return reservation_.cause() == pool::OpenCause::warm_up; }

  // Returns true if the peer was verified by authorities, or was shown a certificate, that are no longer in force. The
  // dial then restarts, and its waiters keep waiting.
  bool certificates_replaced() const;
  void finish(std::unique_ptr<Connection> made) LOOP_ONLY;

  // Logs an address that only egress.report_only permits. If a parent proxy resolves the name, the rules have already
  // checked the name.
  void note_egress() LOOP_ONLY;

  // Adds the cause to the fault of an origin without HTTP/1.1. Such an origin may answer with a TLS alert, which tells
  // a client that requested an upgrade nothing about the versions.
  Fault explained(Fault fault) const;

  // If the dial failed because no descriptor was left, closes an idle connection elsewhere, once. Returns true if that
  // freed a descriptor, so that the dial can be repeated.
  bool free_descriptor_after(const Fault& fault) LOOP_ONLY;

  // ---- HTTP/2: the dial ends with the origin's SETTINGS ----

  void start_h2(net::Dialed dialed) LOOP_ONLY;
  void on_ready(exec::Ready ready) override LOOP_ONLY;
  void end_session() LOOP_ONLY;
  Duration time_left() const LOOP_ONLY;

  // Returns true if the origin sent GOAWAY before a request could be sent, as one that shuts down does, and dials
  // again, a limited number of times. The waiters of an established connection would be served by a new one, too.
  bool dial_after_goaway() LOOP_ONLY;

  // Waits for the acknowledgement of our SETTINGS, for a limited time. An origin may lower its stream limit right after
  // its first SETTINGS and refuse requests sent before the client knows the lower limit, which has arrived by the time
  // of the acknowledgement.
  void await_settings_ack() LOOP_ONLY;

  // Waits for a stream. A limit of zero is like any limit that is reached: the origin should raise it soon (RFC 9113
  // §6.5.2). In the pool a session without streams would serve no request and only trigger the next dial.
  void await_stream() LOOP_ONLY;
  void assign_slot() LOOP_ONLY;
  void on_settings_timeout();

  // Returns true if ALPN selected HTTP/2, or without TLS if the settings do (prior knowledge).
  Result<bool> chose_h2(const net::Dialed& dialed) const;

  PendingDialOwner& owner_;
  const UpstreamContext& context_;
  dns::Resolver& resolver_;
  net::HandshakeBudget& handshakes_;
  pool::Destination& destination_;
  OriginRuntime& origin_;
  pool::Reservation reservation_;
  std::shared_ptr<tls::ClientContext> tls_context_;  // outlives the dial, even if a newer one is loaded
  const std::uint64_t id_ = next_connection_id();    // of the connection, assigned when the dial starts
  const std::uint32_t index_, generation_;           // of the reservation, also after it is used
  std::uint64_t warm_up_ = 0;                        // of on_warm_dial_begun()
  std::string received_via_;                         // of the request for a tunnel that began the dial
  std::optional<net::Dial> dial_;
  net::Address peer_;
  DialState state_ = DialState::created;
  bool descriptor_freed_ = false;       // free_a_descriptor() was called for this dial
  std::optional<Fault> fault_at_turn_;  // that on_turn() reports
  std::uint32_t goaways_ = 0;
  Instant ends_{};  // pool.connect_timeout: until then the origin allows a stream, also on a dial after a GOAWAY
  std::unique_ptr<H2Connection> session_;  // waiting for SETTINGS
  exec::WatchKey key_;
  exec::Timer turn_;
  exec::Timer timeout_;
};

using DialSlot = std::tuple<const pool::Destination*, std::uint32_t, std::uint32_t>;  // and index, generation

struct PendingDial::BySlot {
  using Summary = NoSummary;
  static DialSlot key(const PendingDial& dial) { return {&dial.destination_, dial.index_, dial.generation_}; }
  static bool before(const PendingDial& a, const PendingDial& b) { return key(a) < key(b); }
  static std::uint64_t number(const PendingDial& dial) { return dial.id_; }
  static NoSummary summary(const PendingDial&) { return {}; }
  static NoSummary join(NoSummary, NoSummary) { return {}; }
};

struct PendingDial::ByAge {
  using Summary = NoSummary;
  static std::pair<const pool::Destination*, std::uint64_t> key(const PendingDial& dial) {
    return {&dial.destination_, dial.id_};
  }
  static bool before(const PendingDial& a, const PendingDial& b) { return key(a) < key(b); }
  static std::uint64_t number(const PendingDial& dial) { return dial.id_; }
  static NoSummary summary(const PendingDial&) { return {}; }
  static NoSummary join(NoSummary, NoSummary) { return {}; }
};

}  // namespace carpool::proxy
