// SpanBuffer: the encoded spans of one loop that wait for export, in memory of a fixed size. A span that does not fit
// is dropped and counted; a request never waits for one. Adding a span takes no lock and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/random.h"
#include "exec/loop.h"
#include "proxy/config/config.h"
#include "proxy/telemetry/span.h"

namespace carpool::exec {
class CoalescedMail;
}
namespace carpool::metrics {
class Registry;
}

namespace carpool::proxy {

class SpanBuffer {
 public:
  SpanBuffer(LoopId loop, metrics::Registry& metrics, const config::Otlp& settings);

  // `half_full` is posted once half of the buffer is used. Must be called before the loop runs.
  void notify(exec::CoalescedMail& half_full) { half_full_ = &half_full; }
  void follow(const config::Otlp& settings) LOOP_ONLY;

  bool on() const LOOP_ONLY { return on_; }
  // Returns true if a request without a trace begins one (otlp.sample).
  bool begins_trace() LOOP_ONLY { return one_in_ != 0 && random_.below(one_in_) == 0; }
  TraceId next_trace() LOOP_ONLY { return {next_id(), next_id()}; }
  std::uint64_t next_id() LOOP_ONLY { return random_.below(UINT64_MAX) + 1; }  // never 0

  void add(const Span& span) LOOP_ONLY;
  std::string& scratch() LOOP_ONLY { return scratch_; }  // memory for a text of the span that is added next

  // Batch: encoded spans, each a ScopeSpans.spans.
  struct Batch {
    std::string bytes;
    std::uint64_t spans = 0;
  };
  // Moves the content out. There are never more than two buffers if the previous one was given back before.
  Batch take() LOOP_ONLY;
  void give_back(std::string buffer) LOOP_ONLY;

 private:
  void make_room() LOOP_ONLY;

  const LoopId loop_;
  metrics::Registry& metrics_;
  exec::CoalescedMail* half_full_ = nullptr;
  Random random_;
  bool on_ = false;
  bool notified_ = false;  // half_full_ was posted for the spans in waiting_
  std::uint32_t one_in_ = 0;
  std::size_t limit_ = 0;
  Batch waiting_;
  std::string spare_, scratch_;
  Duration wall_{};  // offset from the loop's clock to the wall clock, read at each take()
};

}  // namespace carpool::proxy
