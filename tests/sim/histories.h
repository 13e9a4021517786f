// Histories: runs a simulation's histories, one seed each, until the time or their number is reached. A failure, or an
// assert of the simulated code, is printed with the command that replays it, and the program exits with 1.
//
//   PROGRAM [--seconds N] [--seed S] [--histories N]
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/clock.h"

namespace carpool::test {

struct Histories {
  const char* program;
  double seconds = 5;
  std::uint64_t seed = 1, most = UINT64_MAX;
};

inline Histories histories_of(const char* program, int argc, char** argv) {
  Histories asked{program};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) asked.seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) asked.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--histories") == 0) asked.most = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return asked;
}

inline Histories running{};  // its seed is that of the running history

inline void print_repetition(std::FILE* to) {
  std::fprintf(to, "replay: %s --histories 1 --seed %llu\n", running.program,
               static_cast<unsigned long long>(running.seed));
}
extern "C" inline void print_seed(int) {
  print_repetition(stderr);
}

// Calls `after` for each history that ended; History(seed).run() returns the failure or an empty string. Returns the
// number of histories.
template <class History, class After>
std::uint64_t run_histories(const Histories& asked, const After& after) {
  std::signal(SIGABRT, print_seed);  // an assert is an oracle too
  const auto end = Clock::now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(asked.seconds));
  running = asked;
  std::uint64_t done = 0;
  for (; done < asked.most && (done == 0 || Clock::now() < end); ++done) {
    running.seed = asked.seed + done;
    History history(running.seed);
    const std::string wrong = history.run();
    if (!wrong.empty()) {
      std::printf("FAILED: %s\n", wrong.c_str());
      print_repetition(stdout);
      std::fflush(stdout);
      std::_Exit(1);  // the remaining state is inconsistent: no destructors run
    }
    after(history);
  }
  return done;
}

}  // namespace carpool::test
