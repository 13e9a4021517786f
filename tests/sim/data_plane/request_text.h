// RequestText: the bytes of an HTTP/1 request of a plan, and the bytes that its client sends later.
#pragma once

#include <cstdio>
#include <string>

#include "tests/sim/data_plane/account.h"

namespace carpool::test {

struct RequestText {
  std::string now, held;
};

inline bool expects(const RequestRecord& one) {
  return one.plan.expect != 0 && one.plan.expect != Expecting::rushes && one.body_size() != 0;
}
inline std::string tunnel_bytes(const RequestRecord& one) {
  return one.token + marked(one.token, one.plan.size);
}
inline void append_chunks(std::string& text, std::string_view body, std::size_t most, const std::string& tail) {
  char head[16];
  for (std::size_t at = 0; at < body.size(); at += most) {
    const std::string_view piece = body.substr(at, most);
    std::snprintf(head, sizeof head, "%zx\r\n", piece.size());
    text.append(head).append(piece).append("\r\n");
  }
  text += "0\r\n" + tail + "\r\n";
}
// The field that frames the body, the end of the head, and the body.
inline RequestText body_text(const RequestRecord& one) {
  const std::string body = marked(one.token, one.body_size());
  const bool posts = one.method() == "POST" || one.method() == "PUT";
  RequestText text;
  if (one.plan.chunked != 0) {
    text.now = "Transfer-Encoding: chunked\r\n\r\n";
    append_chunks(text.held, body, 1000, one.has_tail() ? "X-Tail: " + one.token + "\r\n" : "");
  } else if (!body.empty()) {
    text.now = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    text.held = body;
  } else {
    text.now = posts ? "Content-Length: 0\r\n\r\n" : "\r\n";
  }
  return text;
}
inline std::string head_text(const RequestRecord& one) {
  std::string text = one.method() + (one.secure ? " https://" : " http://") + one.host + "/" + one.token +
                     (one.plan.version == 0 ? " HTTP/1.1" : " HTTP/1.0") + "\r\nHost: " + one.host +
                     "\r\nX-Of: " + one.token + "\r\nX-Proof: " + proof_of(one.token) + "\r\n";
  if (one.plan.method == kUpgrade) text += "Connection: Upgrade\r\nUpgrade: marks\r\n";
  if (one.plan.version == 2) text += "Connection: keep-alive\r\n";
  if (one.plan.expect != 0 && one.body_size() != 0) text += "Expect: 100-continue\r\n";
  if (one.plan.auth != 0) text += "Authorization: Negotiate dG9rZW4=\r\n";
  if (one.plan.urgent != 0) text += "Priority: u=0\r\n";
  if (one.plan.fields != 0) text += "X-Pad: " + marked(one.token, one.plan.fields) + "\r\n";
  return text;
}

inline RequestText request_text(const RequestRecord& one) {
  if (one.plan.method == kConnect) {
    const std::string host = one.host + ":443";
    std::string text = "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    if (one.plan.chunked != 0) text += tunnel_bytes(one);
    return {std::move(text), ""};
  }
  RequestText text = body_text(one);
  text.now.insert(0, head_text(one));
  if (expects(one)) return text;
  // The client of an upgrade ends its body later: 101 may arrive first. A stalled client never does.
  const bool later = one.body_size() != 0 && (one.plan.method == kUpgrade || one.plan.stalls != 0);
  const std::size_t rest = later ? std::min<std::size_t>(5, text.held.size()) : 0;
  text.now.append(text.held, 0, text.held.size() - rest);
  text.held.erase(0, text.held.size() - rest);
  return text;
}

}  // namespace carpool::test
