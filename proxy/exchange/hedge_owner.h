// HedgeOwner: the exchange, as the second attempt of a late request (HedgedAttempt) sees it.
#pragma once

#include "proxy/upstream/upstream_stream.h"

namespace carpool::proxy {

struct AttemptValues;
class UpstreamStreams;

class HedgeOwner : public UpstreamStreamHandler {
 public:
  // Sends the whole request on the connection of `attempt`. Returns false if it was not sent.
  virtual bool send_hedged(AttemptValues& attempt, UpstreamStreams& streams) LOOP_ONLY = 0;
  // Returns true if this head, also of a 1xx, is not for the request of the second attempt, or may not be.
  virtual bool crosses_hedge(const AttemptValues& attempt, const http::ResponseHead& head) LOOP_ONLY = 0;
  // The second attempt has the head of a final response. Returns true if the exchange has taken the attempt over.
  virtual bool on_hedge_head(AttemptValues& attempt, const http::ResponseHead& head) LOOP_ONLY = 0;
  // The second attempt ended: there was no connection, or no response.
  virtual void on_hedge_failed() LOOP_ONLY = 0;

 protected:
  ~HedgeOwner() = default;
};

}  // namespace carpool::proxy
