// An HTTP/2 client of the admin endpoint and its connection, with threads that run when the test says so.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "exec/task_limit.h"
#include "proxy/net/plain_transport.h"
#include "proxy/server/admin/access_rules.h"
#include "proxy/server/admin/h2_connection.h"
#include "tests/unit/http_h2_support.h"
#include "tests/unit/server_admin_loop.h"

namespace carpool::proxy {

// The pool's queue and its reserve: what they accept waits until the test runs it.
class HeldThreads final : public exec::Executor, public exec::TryExecutor {
 public:
  bool execute(exec::TaskPtr task) override {
    if (rejects) return false;
    queued.push_back(std::move(task));
    return true;
  }
  bool try_execute(exec::TaskPtr& task) override {
    if (reserved == 0) return false;
    --reserved;
    helpers.push_back(std::move(task));
    return true;
  }
  static void run_first(std::deque<exec::TaskPtr>& tasks) {
    exec::TaskPtr task = std::move(tasks.front());
    tasks.pop_front();
    exec::run_task(std::move(task), nullptr);
  }
  std::deque<exec::TaskPtr> queued, helpers;
  unsigned reserved = 0;
  bool rejects = false;
};

class AdminH2 : public testing::Test, public AdminH2Connection::Owner {
 protected:
  AdminH2() {
    exec::assume_on_loop();
    now_of_test = loop_.now();
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    far_.reset(ends[1]);
    const exec::StrategyParts parts{exec::StrategyMode::adaptive, threads_, &threads_, limit_, nullptr};
    AdminH2Connection::Owner& owner = *this;
    connection_ =
        std::make_unique<AdminH2Connection>(loop_, owner, AdminConnection::Backend{rules_, program_, control_}, parts,
                                            net::make_plain(Fd(ends[0])), clock_of_test);
    EXPECT_TRUE(connection_->start(loop_.now() + std::chrono::seconds(30)));
  }
  ~AdminH2() override {
    exec::assume_on_loop();
    program_.meanwhile = nullptr;
    while (!threads_.queued.empty()) threads_.run_first(threads_.queued);
    while (!threads_.helpers.empty()) threads_.run_first(threads_.helpers);
    loop_.turn();
    if (connection_) connection_->end();
    for (int i = 0; i < 4; ++i) loop_.turn();
    EXPECT_TRUE(unused_) << "no thread has it any more";
    EXPECT_EQ(responses_, 0U);
  }

  // ---- AdminH2Connection::Owner ----
  void ended(AdminConnection&) override {}
  void closing(AdminH2Connection&) override { closing_ = true; }
  void unused(AdminH2Connection&) override {
    unused_ = true;
    connection_.reset();
  }
  bool may_start_work() override { return true; }
  void mark_working(AdminConnection&) override {}
  void mark_waiting(AdminConnection&) override {}
  bool may_subscribe() override { return listeners_ < 1; }
  bool leaving() const override { return false; }
  void subscribed() override {
    exec::assume_on_loop();
    ++listeners_;
    connection_->send_event({whole_, nullptr});
  }
  const std::shared_ptr<const std::string> whole_ = std::make_shared<const std::string>("whole");
  const std::shared_ptr<const std::string> change_ = std::make_shared<const std::string>("change");
  bool begin_response() override {
    if (responses_ == most_responses_) return false;
    ++responses_;
    return true;
  }
  void end_response() override { --responses_; }
  void unsubscribed() override { --listeners_; }
  // The loop is the thread that runs the connection.
  bool submit(exec::TaskPtr task) override {
    ++runs_;
    if (no_tasks_) return false;
    exec::run_task(std::move(task), nullptr);
    return true;
  }
  void in_background(exec::TaskPtr) override {}

  // ---- the client ----
  http::StreamRecord& ask(std::string_view path, std::string_view method = "GET", bool end = true) {
    records_.emplace_back();
    http::H2Fields fields;
    for (const auto& [name, value] :
         http::List_{{":method", method}, {":scheme", "http"}, {":authority", "localhost"}, {":path", path}}) {
      fields.add(name, value);
    }
    records_.back().stream = *client_.session.request(fields, records_.back(), end, method == "HEAD");
    return records_.back();
  }
  void tell() {
    const std::string bytes = client_.pull();
    if (!bytes.empty()) say(bytes);
  }
  void say(std::string_view bytes) {
    ASSERT_EQ(::send(far_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  bool receive() {
    char buffer[65536];
    const ssize_t received = ::recv(far_.get(), buffer, sizeof buffer, 0);
    if (received == 0) at_end_ = true;
    if (received <= 0) return false;
    raw_.append(buffer, static_cast<std::size_t>(received));
    client_.receive({buffer, static_cast<std::size_t>(received)});
    return true;
  }
  // Exchanges bytes until neither side has output.
  void talk() {
    for (int idle = 0; idle < 2;) {
      tell();
      loop_.turn();
      idle = receive() ? 0 : idle + 1;
    }
  }
  void pass(Duration time) {
    loop_.pass(time);
    now_of_test = loop_.now();
    loop_.turn();
  }

  static inline Instant now_of_test;
  static Instant clock_of_test() { return now_of_test; }

  HandLoop loop_;
  Fd far_;
  admin::SharedRules rules_;
  Program program_;
  admin::FakeControl control_;
  HeldThreads threads_;
  exec::TaskLimit limit_{100};
  std::unique_ptr<AdminH2Connection> connection_;
  std::deque<http::StreamRecord> records_;
  http::End client_{http::H2Role::client};
  std::string raw_;
  unsigned listeners_ = 0, responses_ = 0, most_responses_ = 96;
  int runs_ = 0;
  bool no_tasks_ = false, closing_ = false, unused_ = false, at_end_ = false;
};

}  // namespace carpool::proxy
