// ClosedStreams: classifies frames on closed streams (RFC 9113 §5.1, §5.1.1). Frames that were in flight when we reset
// a stream are ignored; frames after the peer's own END_STREAM and skipped stream numbers are errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

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
    void add(StreamId id) {
      if (ids.size() < kMax) return ids.push_back(id);
      ids[next++ % kMax] = id;
    }
    bool has(StreamId id) const { return std::find(ids.begin(), ids.end(), id) != ids.end(); }
    std::vector<StreamId> ids;
    std::size_t next = 0;
  };
  Ring<16> remote_;
  // As many as a client may have open (H2Options::max_streams): it may have sent trailers on each of them before it
  // reads the first reset.
  Ring<256> local_;
  StreamId newest_ = 0;
};

}  // namespace carpool::proxy::http
