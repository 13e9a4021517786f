// Unit tests of the window of an HTTP/2 session: however a message ends, every byte of DATA that its peer sent is
// returned to the window of the session, so that the session can carry any number of messages.
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http::returned_windows {
namespace {
using namespace std::chrono_literals;

constexpr unsigned kPadded = 8;
const std::string kPiece(900, 'x');

std::string padded(unsigned stream, std::string_view bytes, std::size_t padding) {
  const std::string all = std::string(1, static_cast<char>(padding)).append(bytes).append(padding, '\0');
  return frame(0, kPadded, stream, all);
}

// One end, and the account of its peer.
struct Receiver final : End {
  Receiver(H2Role role, bool free) : End(role, options_of(free)) {
    exchange(role == H2Role::server ? preface() : frame(4, 0, 0, ""));
  }
  static H2Options options_of(bool free) {
    H2Options options;
    options.max_streams = 4;
    options.shared_window_is_free = free;
    return options;
  }
  void exchange(std::string_view bytes, bool answers = true) {
    for (const Frame& one : frames(bytes.starts_with("PRI") ? std::string_view() : bytes))
      if (one.type == 0) sent += one.payload.size();
    receive(bytes);
    if (answers) pull_frames();
  }
  void pull_frames() {
    std::string out = pull();
    if (out.starts_with("PRI")) out.erase(0, kH2Preface.size());
    for (const Frame& one : frames(out))
      if (one.type == 8 && one.stream == 0) returned += code(one);
  }
  H2Stream& stream(unsigned id) { return *streams.at(static_cast<StreamId>(id)).stream; }
  std::uint64_t sent = 0, returned = 0;
  StreamRecord asked;  // of a client
};

struct Case {
  const char* name;
  void (*message)(Receiver&, unsigned);
};

void expect_windows(H2Role role, const Case& one) {
  constexpr unsigned kMessages = 700;  // together much more than the window of the session
  for (const bool free : {true, false}) {
    SCOPED_TRACE(std::string(one.name) + (free ? ", shared" : ""));
    Receiver end(role, free);
    const std::uint64_t first = end.returned;  // the window begins with 65,535
    unsigned id = 1;
    for (unsigned n = 0; n < kMessages && !end.session.over(); ++n, id += 2) {
      end.now += 1s;  // resets are no attack
      one.message(end, id);
      end.pull_frames();
    }
    ASSERT_FALSE(end.session.over()) << id << " " << end.session.connection_error();
    const std::uint64_t window = 65535 + first;
    EXPECT_LT(2 * window, end.sent);
    EXPECT_LE(end.sent, end.returned - first + window / 2 + 16384);
    EXPECT_LE(end.returned - first, end.sent);
  }
}

List_ post(std::string_view length = {}) {
  List_ fields = get();
  fields.front().second = "POST";
  if (!length.empty()) fields.emplace_back("content-length", length);
  return fields;
}

void respond(Receiver& end, unsigned id) {
  H2Fields fields;
  fields.add(":status", "200");
  H2Stream& stream = end.stream(id);
  end.session.respond(stream, fields, true);
  end.session.leave(stream);
}

const Case kUploads[] = {
    {"whole",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + data(id, kPiece, false) + data(id, kPiece));
       respond(end, id);
     }},
    {"padded",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + padded(id, kPiece, 255) + padded(id, "", 200) + padded(id, "x", 0) +
                    padded(id, "", 0) + data(id, ""));
       respond(end, id);
     }},
    {"reset by the client",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + data(id, kPiece, false) + padded(id, kPiece, 9) +
                    frame(3, 0, id, number(8)));
     }},
    {"reset in the middle of a frame",
     [](Receiver& end, unsigned id) {
       const std::string all = padded(id, kPiece, 100);
       end.exchange(headers(id, post(), false));
       end.sent += all.size() - 9;
       end.receive(all.substr(0, 500));
       end.session.reset(end.stream(id), H2Error::cancel);
       end.pull_frames();
       end.receive(all.substr(500));
       end.exchange(data(id, kPiece));
     }},
    {"reset before its bytes were read",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false));
       end.session.reset(end.stream(id), H2Error::cancel);
       end.exchange(data(id, kPiece, false) + padded(id, kPiece, 3));
     }},
    {"reset, and the frame waits",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + data(id, kPiece, false));
       end.session.reset(end.stream(id), H2Error::cancel);
       end.exchange(data(id, kPiece, false) + padded(id, kPiece, 3), false);
     }},
    {"answered early",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + data(id, kPiece, false));
       respond(end, id);
       end.exchange(data(id, kPiece, false) + padded(id, kPiece, 3), false);
       end.exchange(data(id, kPiece, false));
     }},
    {"too long",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post("10"), false) + data(id, kPiece, false) + padded(id, kPiece, 20) +
                    data(id, kPiece));
       end.exchange(data(id, kPiece));
     }},
    {"too short",
     [](Receiver& end, unsigned id) { end.exchange(headers(id, post("2000"), false) + data(id, kPiece)); }},
    {"malformed",
     [](Receiver& end, unsigned id) {
       List_ fields = post();
       fields.emplace_back("connection", "close");
       end.exchange(headers(id, fields, false) + data(id, kPiece, false) + padded(id, kPiece, 20));
       end.exchange(data(id, kPiece));
     }},
    {"a head over the limit",
     [](Receiver& end, unsigned id) {
       const std::string large(H2Options().head.header_bytes + 1, 'x');
       List_ fields = post();
       for (unsigned n = 0; n < 7; ++n) fields.emplace_back("x", std::string_view(large).substr(0, 10'000));
       std::string head = block(fields);
       std::string all = frame(1, 0, id, head.substr(0, 16'000));
       for (std::size_t at = 16'000; at < head.size(); at += 16'000)
         all += frame(9, at + 16'000 >= head.size() ? kEndHeaders : 0, id, head.substr(at, 16'000));
       end.exchange(all + data(id, kPiece, false) + padded(id, kPiece, 20));
       end.exchange(data(id, kPiece));
     }},
    {"fields in the middle",
     [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + data(id, kPiece, false) + headers(id, {{"x", "y"}}, false) +
                    data(id, kPiece, false));
       end.exchange(data(id, kPiece));
     }},
    {"a stream window that overflows", [](Receiver& end, unsigned id) {
       end.exchange(headers(id, post(), false) + data(id, kPiece, false) + frame(8, 0, id, number(0x7fffffff)) +
                    data(id, kPiece, false));
       end.exchange(data(id, kPiece));
     }}};

TEST(TheWindowOfASession, IsReturnedHoweverAnUploadEnds) {
  for (const Case& one : kUploads) expect_windows(H2Role::server, one);
}

// The client does not acknowledge our SETTINGS, so that it may open more streams than they allow.
TEST(TheWindowOfASession, IsReturnedForStreamsBeyondTheLimit) {
  Receiver end(H2Role::server, true);
  for (unsigned id = 1; id < 9; id += 2) end.exchange(headers(id, post(), false));
  const std::uint64_t first = end.returned;
  for (unsigned id = 9; id < 3000; id += 2) {
    end.now += 1s;
    end.exchange(headers(id, post(), false) + data(id, kPiece, false) + padded(id, kPiece, 9), false);
    end.exchange(data(id, kPiece));
  }
  ASSERT_FALSE(end.session.over());
  EXPECT_EQ(4U, end.streams.size());
  EXPECT_LE(end.sent, end.returned - first + 256 * 1024);
}

H2Stream& ask(Receiver& end) {
  H2Fields fields;
  for (const auto& [name, value] : get()) fields.add(name, value);
  end.asked = StreamRecord();
  Result<H2Stream*> stream = end.session.request(fields, end.asked, true, false);
  EXPECT_TRUE(stream);
  end.pull_frames();
  return **stream;
}

const List_ kOk{{":status", "200"}};
const List_ kEarly{{":status", "103"}};
const List_ kTen{{":status", "200"}, {"content-length", "10"}};

const Case kResponses[] = {
    {"whole",
     [](Receiver& end, unsigned id) {
       ask(end);
       end.exchange(headers(id, kOk, false) + data(id, kPiece, false) + padded(id, kPiece, 7) + data(id, kPiece));
     }},
    {"reset by the origin",
     [](Receiver& end, unsigned id) {
       ask(end);
       end.exchange(headers(id, kOk, false) + data(id, kPiece, false) + padded(id, kPiece, 7) +
                    frame(3, 0, id, number(8)));
     }},
    {"left by its client",
     [](Receiver& end, unsigned id) {
       H2Stream& stream = ask(end);
       end.exchange(headers(id, kOk, false) + data(id, kPiece, false));
       end.session.reset(stream, H2Error::cancel);
       end.exchange(data(id, kPiece, false) + padded(id, kPiece, 7), false);
       end.exchange(data(id, kPiece, false));
       end.exchange(data(id, kPiece, false) + padded(id, kPiece, 7));
     }},
    {"left in the middle of a frame",
     [](Receiver& end, unsigned id) {
       H2Stream& stream = ask(end);
       const std::string all = padded(id, kPiece, 100);
       end.exchange(headers(id, kOk, false));
       end.sent += all.size() - 9;
       end.receive(all.substr(0, 500));
       end.session.reset(stream, H2Error::cancel);
       end.pull_frames();
       end.receive(all.substr(500));
       end.exchange(data(id, kPiece));
     }},
    {"without a final head",
     [](Receiver& end, unsigned id) {
       ask(end);
       end.exchange(headers(id, kEarly, false) + data(id, kPiece, false) + padded(id, kPiece, 7));
       end.exchange(data(id, kPiece));
     }},
    {"too long", [](Receiver& end, unsigned id) {
       ask(end);
       end.exchange(headers(id, kTen, false) + data(id, kPiece, false) + padded(id, kPiece, 7));
       end.exchange(data(id, kPiece));
     }}};

TEST(TheWindowOfASession, IsReturnedHoweverAResponseEnds) {
  for (const Case& one : kResponses) expect_windows(H2Role::client, one);
}

}  // namespace
}  // namespace carpool::proxy::http::returned_windows
