// Keyboard: reads words from the demo's terminal that cause and end failures: "kill", "start", "pause", "resume",
// "drain", "reconnect". Commands to the pools use the admin endpoint, like `carpool pause`.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/result.h"
#include "proxy/commands/demo/stop_signal.h"

namespace carpool::proxy {

class DemoOrigin;

class Keyboard {
 public:
  // `fd` and `out` must outlive the object. Reads nothing while another job has the terminal.
  static Result<std::unique_ptr<Keyboard>> start(int fd, std::FILE* out, DemoOrigin& origin, std::string admin);
  Keyboard(StopSignal stop, int fd, std::FILE* out, DemoOrigin& origin, std::string admin);  // for start()
  ~Keyboard();                                                                               // stops at once
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

 private:
  void run();
  bool read_some();  // returns false at the end of the input
  void execute(std::string_view word);
  void command_pools(std::string_view word);
  void print(const std::string& text);

  const StopSignal stop_;
  const int fd_;
  std::FILE* const out_;
  DemoOrigin& origin_;
  const std::string admin_;
  std::string line_;  // the part of a line that was read
  std::thread thread_;
};

}  // namespace carpool::proxy
