// AccessLogFile: the access log in memory while it exists, for tests of what it says about an exchange.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "proxy/telemetry/log.h"
#include "proxy/telemetry/log_levels.h"

namespace carpool::test {

class AccessLogFile {
 public:
  // `sample`: one of so many requests that succeed is logged.
  explicit AccessLogFile(std::uint32_t sample = 1) {
    EXPECT_TRUE(proxy::log::start({.fd = file_.get()}));
    proxy::log::set_access(true, sample);
  }
  AccessLogFile(const AccessLogFile&) = delete;
  AccessLogFile& operator=(const AccessLogFile&) = delete;
  ~AccessLogFile() { stop(); }

  // Ends the log and returns its beginning. Lines are collected for less than a second.
  std::string text() {
    stop();
    std::string said(4096, '\0');
    said.resize(static_cast<std::size_t>(pread(file_.get(), said.data(), said.size(), 0)));
    return said;
  }

 private:
  static void stop() {
    proxy::log::stop();
    proxy::log::set_access(false, 1);
  }
  const Fd file_{memfd_create("log", 0)};
};

}  // namespace carpool::test
