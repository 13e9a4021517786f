#include "proxy/http/message_order.h"

#include <algorithm>

namespace carpool::proxy::http {

const char* violation(MessagePhase from, MessageEvent event) {
  if (from == MessagePhase::ended || from == MessagePhase::closed) return "a frame after END_STREAM";
  switch (event) {
    case MessageEvent::informational:
      return "a 1xx head after the final head";
    case MessageEvent::informational_end:
      return "a 1xx head that ends the stream";
    case MessageEvent::head_short:
    case MessageEvent::end_short:
    case MessageEvent::trailers_short:
      if (from == MessagePhase::awaiting_head && event != MessageEvent::head_short) break;
      return "the content is shorter than Content-Length";
    case MessageEvent::excess:
      if (from == MessagePhase::content) return "the content is longer than Content-Length";
      break;
    case MessageEvent::fields:
      return "trailers that do not end the stream";
    case MessageEvent::head:
    case MessageEvent::head_end:
    case MessageEvent::bare_head:
    case MessageEvent::bare_head_end:
      return "a second final head";
    default:
      break;
  }
  if (from == MessagePhase::no_content) return "content in a message that must not have any";
  return "content before the final head";
}

bool MessageOrder::advance(MessageEvent event) {
  const MessagePhase to = follow(phase_, event);
  if (violates(to) && error_ == nullptr) error_ = violation(phase_, event);
  phase_ = to;
  return !violates(to);
}

bool MessageOrder::informational(bool end) {
  return advance(end ? MessageEvent::informational_end : MessageEvent::informational);
}

bool MessageOrder::head(bool bare, std::optional<std::uint64_t> length, bool end) {
  if (bare) return advance(end ? MessageEvent::bare_head_end : MessageEvent::bare_head);
  announced_ = length.has_value();
  left_ = length.value_or(0);
  if (!end) return advance(MessageEvent::head);
  return advance(short_of() ? MessageEvent::head_short : MessageEvent::head_end);
}

bool MessageOrder::data(std::size_t bytes) {
  if (bytes == 0) return advance(MessageEvent::empty_data);
  if (announced_ && bytes > left_) return advance(MessageEvent::excess);
  left_ -= std::min<std::uint64_t>(left_, bytes);
  return advance(MessageEvent::data);
}

bool MessageOrder::end() {
  return advance(short_of() ? MessageEvent::end_short : MessageEvent::end);
}

bool MessageOrder::fields(bool end) {
  if (!end) return advance(MessageEvent::fields);
  return advance(short_of() ? MessageEvent::trailers_short : MessageEvent::trailers);
}

}  // namespace carpool::proxy::http
