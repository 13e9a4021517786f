// h1_reading.h: drives the parsers as their owners do, over any split of the bytes, and keeps the result as text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/h1/codec.h"
#include "proxy/http/h1/field_layouts.h"

namespace carpool::proxy::http {

class Collected final : public BodySink {
 public:
  void on_body(std::string_view bytes) override { body.append(bytes); }
  void on_trailer(std::string_view name, std::string_view value, bool /*sensitive*/) override {
    trailers.append(name).append("=").append(value).append(";");
  }
  std::string body, trailers;
};

// The results of a parser for a stream of messages.
struct Reading {
  std::string text;  // one line for each message
  std::size_t messages = 0;
  std::optional<FaultKind> fault;
  std::string detail;
  bool boundary = false;
  friend bool operator==(const Reading& a, const Reading& b) {
    return a.text == b.text && a.messages == b.messages && a.fault == b.fault && a.boundary == b.boundary;
  }
};

inline std::string text_of(const Fields& fields) {
  return std::string(fields.lines(0, fields.size()));
}

inline void describe(std::string& out, const RequestHead& head) {
  out.append(head.method + "|" + head.target + "|" + text_of(head.fields));
  out.append("|v" + std::to_string(static_cast<int>(head.version)) + "f" +
             std::to_string(static_cast<int>(head.framing)) + "n" + std::to_string(head.length) +
             (head.keep_alive ? "k" : "") + (head.expect_continue ? "e" : "") + (head.upgrade ? "u" : ""));
}

inline void describe(std::string& out, const ResponseHead& head) {
  out.append(std::to_string(head.status) + "|" + head.reason + "|" + text_of(head.fields));
  out.append("|v" + std::to_string(static_cast<int>(head.version)) + "f" +
             std::to_string(static_cast<int>(head.framing)) + "n" + std::to_string(head.length) +
             (head.keep_alive ? "k" : ""));
}

// Feeds `bytes`, cut at `cuts` (ascending), until all are consumed, a fault, or `most` messages.
template <class Reader, class Head>
Reading read_pieces(Reader& reader, std::string_view bytes, const std::vector<std::size_t>& cuts, std::size_t most,
                    FieldLayouts* layouts) {
  Reading result;
  Head head;
  Collected sink;
  std::size_t from = 0;
  std::string piece;  // a buffer of its own, so that ASan sees a read past its end
  for (std::size_t cut = 0; cut <= cuts.size(); ++cut) {
    const std::size_t to = cut < cuts.size() ? cuts[cut] : bytes.size();
    piece.assign(bytes.substr(from, to - from));
    from = to;
    std::string_view rest = piece;
    for (bool more = true; more && result.messages < most;) {
      const Result<ParseResult> fed = reader.feed(rest, head, sink, layouts);
      if (!fed) {
        result.fault = fed.fault().kind;
        result.detail = fed.fault().detail;
        return result;
      }
      rest.remove_prefix(fed->consumed);
      more = fed->progress != Progress::need_more;
      if (fed->progress == Progress::head || fed->progress == Progress::upgraded) describe(result.text, head);
      if (fed->progress == Progress::upgraded) {
        result.text.append("|upgraded");
        result.messages = most;
      }
      if (fed->progress == Progress::message) {
        result.text.append("|" + sink.body + "|" + sink.trailers + "\n");
        sink = {};
        ++result.messages;
        more = !rest.empty();
      }
    }
  }
  return result;
}

inline Reading read_requests(std::string_view bytes, const std::vector<std::size_t>& cuts = {},
                             const Limits& limits = {}, FieldLayouts* layouts = nullptr) {
  RequestReader reader(limits);
  Reading result = read_pieces<RequestReader, RequestHead>(reader, bytes, cuts, 100, layouts);
  result.boundary = reader.at_boundary();
  return result;
}

inline Reading read_response(std::string_view bytes, const std::vector<std::size_t>& cuts = {},
                             std::string_view method = "GET", bool upgrade = false, const Limits& limits = {},
                             FieldLayouts* layouts = nullptr) {
  ResponseReader reader(limits);
  reader.expect(method, upgrade);
  Reading result = read_pieces<ResponseReader, ResponseHead>(reader, bytes, cuts, 1, layouts);
  if (!result.fault && result.messages == 0) {
    const Result<Progress> end = reader.finish();
    if (end) {
      result.messages = 1;
      result.boundary = true;
    } else {
      result.fault = end.fault().kind;
      result.detail = end.fault().detail;
    }
  }
  return result;
}

inline std::vector<std::size_t> every_byte(std::size_t size) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i < size; ++i) cuts.push_back(i);
  return cuts;
}

}  // namespace carpool::proxy::http
