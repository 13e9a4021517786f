// Unit tests of an HTTP/2 session whose library reaches the limit of its memory in each of its allocations: what it
// cannot send ends the session, so that no peer waits for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "tests/unit/http_h2_pair.h"

namespace carpool::proxy::http {
namespace {

constexpr std::size_t kStep = 256;
constexpr std::size_t kEnough = std::size_t{64} * 1024;  // for every test of this file

H2Options limited(std::size_t memory) {
  H2Options options;
  options.memory = memory;
  options.window = 1 << 20;
  return options;
}

bool has_frame(std::string_view bytes, unsigned type, unsigned stream = 0) {
  const std::vector<Frame> all = frames(bytes);
  return std::any_of(all.begin(), all.end(), [&](const Frame& f) { return f.type == type && f.stream == stream; });
}

std::unique_ptr<End> made_with(std::size_t memory, H2Role role) {
  try {
    return std::make_unique<End>(role, limited(memory));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

TEST(AnH2SessionWithoutMemory, IsNotMadeIfItCannotAnnounceItself) {
  for (const H2Role role : {H2Role::client, H2Role::server}) {
    std::size_t made = 0;
    for (std::size_t memory = 0; memory < kEnough; memory += kStep) {
      const std::unique_ptr<End> end = made_with(memory, role);
      if (end == nullptr) continue;
      ++made;
      std::string out = end->pull();
      if (role == H2Role::client && !out.empty()) out.erase(0, kH2Preface.size());
      EXPECT_TRUE(end->session.over() || (has_frame(out, 4) && has_frame(out, 8))) << memory;
    }
    EXPECT_NE(0U, made);
  }
}

TEST(AnH2SessionWithoutMemory, EndsIfItCannotSendAControlFrame) {
  struct Call {
    unsigned type;
    void (*call)(H2Session&);
  };
  for (const Call& call :
       {Call{6, [](H2Session& session) { session.ping(1); }},
        Call{7, [](H2Session& session) { session.announce_shutdown(); }},
        Call{7, [](H2Session& session) { session.goaway(H2Error::no_error); }},
        Call{7, [](H2Session& session) { session.terminate(H2Error::enhance_your_calm, H2Abuse::control); }}}) {
    std::size_t failed = 0;
    for (std::size_t memory = 0; memory < kEnough; memory += kStep) {
      const std::unique_ptr<End> end = made_with(memory, H2Role::server);
      if (end == nullptr || !end->receive(preface())) continue;
      static_cast<void>(end->pull());
      if (end->session.over()) continue;
      for (int n = 0; n < 20; ++n) call.call(end->session);
      const bool sent = has_frame(end->pull(), call.type);
      EXPECT_TRUE(sent || end->session.over()) << memory;
      failed += end->session.over() && !sent ? 1 : 0;
    }
    EXPECT_TRUE(failed != 0 || call.type == 7);
  }
}

// An upload and a response that need window updates and resumed streams.
TEST(AnH2SessionWithoutMemory, CompletesAnExchangeOrEnds) {
  const std::string upload(600'000, 'u'), download(300'000, 'd');
  std::size_t completed = 0;
  for (std::size_t memory = 0; memory < kEnough; memory += kStep) {
    const std::unique_ptr<End> server = made_with(memory, H2Role::server);
    if (server == nullptr) continue;
    End client(H2Role::client);
    talk(client, *server);
    StreamRecord asked;
    const Result<H2Stream*> stream = client.session.request(fields_of(get()), asked, false, false);
    if (!stream) continue;
    client.session.body(**stream, upload);
    client.session.end(**stream);
    bool answered = false;
    for (int round = 0; round < 60; ++round) {
      talk(client, *server);
      for (auto& [id, record] : server->streams) {
        if (record.stream == nullptr) continue;
        server->session.consume(*record.stream, record.body.size());
        if (!std::exchange(answered, true))
          server->session.respond(*record.stream, fields_of({{":status", "200"}}), false);
        if (round < 30) {
          server->session.body(*record.stream, std::string_view(download).substr(0, round == 0 ? 0 : 3000));
        }
        if (round == 30) server->session.end(*record.stream);
      }
      if (!asked.closed) client.session.consume(**stream, asked.body.size());
    }
    EXPECT_TRUE(asked.ended || asked.closed || server->session.over()) << memory;
    completed += asked.ended ? 1 : 0;
  }
  EXPECT_NE(0U, completed);
}

}  // namespace
}  // namespace carpool::proxy::http
