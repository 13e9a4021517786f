// ClosedStreams: classifies frames on closed streams (RFC 9113 §5.1, §5.1.1). Frames that were in flight when we reset
// a stream are ignored; frames after the peer's own END_STREAM and skipped stream numbers are errors.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "proxy/http/h2/types.h"

namespace carpool::proxy::http {

class ClosedStreams {
 public:
  void note_opened(StreamId id) { newest_ = std::max(newest_, id); }
  void note_closed_by_peer(StreamId id) { remote_.add(id); }
  void note_reset_by_us(StreamId id) { local_.add(id); }
  bool closed_by_peer(StreamId id) const { return remote_.has(id); }
  // Judges HEADERS on a stream that is not open; returns no_error if they are to be ignored.
  H2Error check_headers(StreamId id) const {
    if (id > newest_ || local_.has(id)) return H2Error::no_error;
    return remote_.has(id) ? H2Error::stream_closed : H2Error::protocol_error;
  }

 private:
  // The last kMax stream numbers; older ones are overwritten.
  template <std::size_t kMax>
  struct Ring {
    void add(StreamId id) { ids[next++ % kMax] = id; }
    // An unused place holds no number: 0 is the connection.
    bool has(StreamId id) const {
      const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(next, kMax));
      return std::find(ids.begin(), end, id) != end;
    }
    std::array<StreamId, kMax> ids{};
    std::size_t next = 0;
  };
  Ring<16> remote_;
  Ring<64> local_;
  StreamId newest_ = 0;
};

}  // namespace carpool::proxy::http
