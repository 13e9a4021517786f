// Unit tests of ask(): how long a command waits for an instance.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "proxy/commands/cli/admin_client.h"
#include "proxy/net/bind.h"

namespace carpool::proxy::cli {
namespace {

// The timeout of a single wait is zero here: a response that is not there yet would be late.
TEST(ACommand, WaitsForTheResponseLongerThanForTheConnection) {
  Result<net::Bound> bound = net::bind_and_listen("127.0.0.1:0", 1);
  ASSERT_TRUE(bound);
  std::thread server([&] {
    pollfd listening{bound->fd.get(), POLLIN, 0};
    ::poll(&listening, 1, -1);
    const Fd client(::accept(bound->fd.get(), nullptr, nullptr));
    std::array<char, 1024> request{};
    EXPECT_GT(::recv(client.get(), request.data(), request.size(), 0), 0);
    constexpr std::string_view kResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    EXPECT_EQ(::send(client.get(), kResponse.data(), kResponse.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kResponse.size()));
  });
  Instance instance{bound->address.text(), {}, 0};
  instance.response_seconds = 60;
  const Result<Reply> reply = ask(instance, "POST", "/reload");
  server.join();
  ASSERT_TRUE(reply) << reply.fault().detail;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "{}");
}

}  // namespace
}  // namespace carpool::proxy::cli
