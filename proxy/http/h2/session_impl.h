// H2Impl: the implementation of H2Session; included by proxy/http/h2/*.cc only.
#pragma once

#include <nghttp2/nghttp2.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "proxy/http/h2/abuse_guard.h"
#include "proxy/http/h2/closed_streams.h"
#include "proxy/http/h2/frame_tracker.h"
#include "proxy/http/h2/goaway_filter.h"
#include "proxy/http/h2/head_reader.h"
#include "proxy/http/h2/memory.h"
#include "proxy/http/h2/session.h"

namespace carpool::proxy::http {

struct H2Impl {
  H2Impl(H2Role role_, const H2Options& options_, H2Sink& sink_)
      : role(role_),
        options(options_),
        sink(sink_),
        memory(options_.memory),
        guard(options_),
        goaways(role_),
        reader(options_.head) {}
  ~H2Impl();

  // ---- streams (session_streams.cc) ----
  H2Stream& open(StreamId id);
  void free(H2Stream& stream);
  H2Stream* find(StreamId id);
  void close(H2Stream& stream, H2Error error);
  void resume(H2Stream& stream);
  // Ends the session if a call of the library failed. The only reason is a lack of memory, and the peer would never
  // learn of the frame.
  void require(int result);
  void queue(H2Stream& stream, std::string_view bytes);
  void detach(H2Stream& stream);
  void drop_queue(H2Stream& stream);
  void submit_reset(H2Stream& stream, H2Error error);
  void cut_if_drained(H2Stream& stream);
  void give_window(H2Stream& stream, std::size_t bytes);
  void return_window(H2Stream& stream, std::size_t bytes);
  void widen(H2Stream& stream);
  void report_sent();
  void release_memory();

  // ---- heads to send (session_heads.cc) ----
  bool has_memory_for(std::size_t head) const;
  void inform(H2Stream& stream, const H2Fields& head);
  void respond(H2Stream& stream, const H2Fields& head);
  void submit_head(H2Stream& stream, const H2Fields& head);
  void submit_waiting();
  bool refuse_waiting();
  bool only_trailers_left(const H2Stream& stream, const Fields& last) const;
  bool may_send(const H2Stream& stream, const Fields& last) const;
  void submit_trailers(H2Stream& stream, const Fields& last);
  void submit_late_trailers(H2Stream& stream);
  std::unique_ptr<H2Fields> take_waiting(H2Stream& stream);

  // ---- receiving (session_receive.cc) ----
  void begin_block(const nghttp2_frame& frame);
  void leave_out(H2Stream& stream);
  void end_block(const nghttp2_frame& frame);
  void forget_block();
  void on_request_head(H2Stream& stream, bool end);
  void on_response_head(H2Stream& stream, bool end);
  void on_trailers(H2Stream& stream, bool end);
  void on_data(H2Stream& stream, std::string_view bytes);
  void on_padding(StreamId id, std::size_t bytes);
  void end_data(H2Stream& stream, bool empty, bool end);
  void on_end(H2Stream& stream);
  void on_field(std::string_view name, std::string_view value, bool sensitive);
  void note_queue();
  void on_peer_settings();
  void on_ping_ack(const std::uint8_t* payload);
  void on_reset_frame(StreamId id);
  H2PeerSettings peer() const;
  void malformed(H2Stream& stream, const char* why, FaultKind kind = FaultKind::malformed_response);
  void out_of_order(H2Stream& stream);
  void note(H2Guard::Frame frame);
  void check_late_frame(StreamId id);
  void watch_frames(std::string_view bytes);
  ssize_t feed(std::string_view bytes);  // passes bytes to the library; a negative result is its error
  template <class Pass>
  void pass_whole_heads(std::string_view bytes, const Pass& pass);
  void stop(H2Error error, H2Abuse why);

  // ---- sending (session_send.cc) ----
  ssize_t next_frame(H2Stream& stream, nghttp2_session* of, StreamId id, std::size_t most, std::uint32_t& flags);
  int write_frame(H2Stream& stream, std::string_view head, std::size_t size);
  void append_frame(std::string_view bytes);
  void note_begun(StreamId id);
  void on_sent(const nghttp2_frame& frame);
  void stop_upload(H2Stream& stream);
  void on_reset_sent(StreamId id, H2Error error);
  void on_goaway_sent(const nghttp2_goaway& frame);
  void on_never_sent(StreamId id);
  void on_head_dropped(StreamId id);
  const std::vector<nghttp2_nv>& list(const H2Fields& fields);
  const std::vector<nghttp2_nv>& list(const Fields& fields);

  H2Role role;
  H2Options options;
  H2Sink& sink;
  H2Memory memory;
  H2Guard guard;
  ClosedStreams past;      // servers
  FrameTracker frames;     // servers
  std::string split_head;  // servers: the first bytes of a frame header, until its last one arrives
  GoawayFilter goaways;
  std::size_t preface_left = kH2Preface.size();
  StreamId last_taken = std::numeric_limits<StreamId>::max();  // servers: the lowest that a GOAWAY names
  H2HeadReader reader;
  nghttp2_session* session = nullptr;
  Instant now{};
  H2Abuse abuse = H2Abuse::none;
  std::string connection_error;  // of our GOAWAY
  bool failed = false;
  bool receiving = false;  // within receive()
  bool quiet = false;      // there was nothing to send, and nothing was received or submitted since
  bool terminating = false;
  bool stopped_by_owner = false;  // by terminate(), not because of what was received
  std::size_t backlog = 0;
  std::uint64_t messages_framed = 0;
  std::size_t queued = 0;  // frames that waited in the library before the frame, or the part of one, that is being read
  std::size_t stream_count = 0;

  // The header block being received; blocks never interleave.
  RequestHead request;
  ResponseHead response;
  Fields trailers;
  H2Stream* block = nullptr;
  Instant block_began{};
  H2Stream* recent = nullptr;  // found last, and not freed since

  List<H2Stream, H2StreamTag> streams;
  List<H2Stream, H2StreamTag> spare;  // recycled
  std::size_t spares = 0;
  List<H2Stream, H2SentTag> moved;
  List<H2Stream, H2WaitingTag> waiting;  // their heads, or the trailers behind one, wait for the library's memory
  std::size_t waiting_bytes = 0;
  std::vector<nghttp2_nv> nva;
  std::string* out = nullptr;  // the destination of pull() and its limit
  std::size_t most_out = 0;
};

// The callbacks shared by all sessions (callbacks.cc).
const nghttp2_session_callbacks* h2_callbacks();
nghttp2_data_provider h2_body_of(H2Stream& stream);

// An empty queue keeps at most this capacity.
// The factor by which a header block may exceed the limit during decoding. Up to this factor the stream gets a reply;
// beyond it the session ends (a few bytes can decode to megabytes).
inline constexpr std::uint64_t kBlockGrowth = 4;
inline constexpr std::size_t kLargeQueue = std::size_t{64} * 1024;

inline H2Error h2_error(std::uint32_t code) {
  return static_cast<H2Error>(code);
}

}  // namespace carpool::proxy::http
