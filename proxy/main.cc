// main(): reads and checks the configuration, runs the requested command or the server, and maps the outcome to an exit
// code.
#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "exec/uv/allocator.h"
#include "proxy/commands/ca/ca.h"
#include "proxy/commands/cli/cli.h"
#include "proxy/commands/cli/help.h"
#include "proxy/commands/credential/credential.h"
#include "proxy/commands/demo/demo.h"
#include "proxy/commands/health.h"
#include "proxy/commands/libraries.h"
#include "proxy/commands/webhook/server.h"
#include "proxy/config/exit_code.h"
#include "proxy/config/options.h"
#include "proxy/config/socket_folder.h"
#include "proxy/config/token_file.h"
#include "proxy/downstream/authority_check.h"
#include "proxy/downstream/certificate_check.h"
#include "proxy/downstream/listener_credentials.h"
#include "proxy/net/egress_check.h"
#include "proxy/net/tls/allocator.h"
#include "proxy/server/overload/memory_reserve.h"
#include "proxy/server/run.h"
#include "proxy/server/standard_streams.h"

namespace {
// A response about a thousand pools takes megabytes briefly. Blocks of this size are returned to the system instead of
// staying in the heap.
constexpr int kOwnMapping = 256 * 1024;

// Performs the checks that need other components: the egress rules, and the files that the configuration names. The
// start and a reload load the certificates and the token themselves, and a reload compares them with those in force.
void check_loaded(carpool::proxy::config::Reading& reading) {
  carpool::proxy::net::check_fixed_origins(reading);
  carpool::proxy::check_credentials(reading);
  carpool::proxy::check_authority(reading);
}

void check_files(carpool::proxy::config::Reading& reading) {
  check_loaded(reading);
  carpool::proxy::config::check_tokens(reading);
  carpool::proxy::check_certificates(reading);
  carpool::proxy::config::check_sockets(reading);
}

// Returns the exit code of a command. An output that could not be written is an error, but a reader that has closed the
// pipe needs no message.
int written(int code) {
  std::cout.flush();
  if (std::cout && std::ferror(stdout) == 0) return code;
  pollfd output{STDOUT_FILENO, 0, 0};
  const bool reader_left = ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
  if (!reader_left) std::fputs("carpool: the output could not be written\n", stderr);
  return code == 0 ? carpool::proxy::kExitInternal : code;
}

int dispatch(const carpool::proxy::config::Options& options) {
  namespace config = carpool::proxy::config;
  const config::Env env = config::process_env();
  if (const std::optional<int> code = config::run_command(options, env, std::cout, std::cerr)) return written(*code);
  if (options.command == config::Command::version) {
    carpool::proxy::print_version(std::cout, carpool::proxy::revision());
    return written(0);
  }
  if (options.command == config::Command::help) {
    std::cout << carpool::proxy::cli::program_help();
    return written(0);
  }
  if (options.command == config::Command::demo) return carpool::proxy::serve_demo();
  config::Options source = options;
  const config::Reading reading = config::load(options, env, &source.digest);
  source.config = config::find_config(options);  // a reload reads the same file as the start
  source.locate = &check_files;
  // A running instance stays ready when its file is replaced by one with errors.
  if (options.command == config::Command::health && config::names_instance(reading)) {
    return carpool::proxy::run_health_command(reading.config);
  }
  if (!reading) {
    config::report(reading, std::cerr);
    return carpool::proxy::kExitConfiguration;
  }
  for (const config::ConfigError& warning : reading.warnings) source.warnings.push_back(warning.line_text());
  return carpool::proxy::serve(reading.config, source);
}

// Runs a subcommand that is a program of its own. Returns its exit code, or nothing if `parsed` is of another command.
template <class Options, class Run>
std::optional<int> run_program(const std::optional<std::variant<Options, std::string>>& parsed, Run run) {
  if (!parsed) return std::nullopt;
  if (const auto* options = std::get_if<Options>(&*parsed)) return run(*options);
  std::fprintf(stderr, "carpool: %s\n", std::get<std::string>(*parsed).c_str());
  return carpool::proxy::kExitConfiguration;
}
std::optional<int> run_programs(int argc, char** argv) {
  using namespace carpool::proxy;
  if (const auto code = run_program(parse_webhook(argc, argv), serve_webhook)) return code;
  const auto ca = [](const CaOptions& options) { return written(run_ca(options, std::cout, std::cerr)); };
  if (const auto code = run_program(parse_ca(argc, argv), ca)) return code;
  return run_program(parse_credential(argc, argv), [](const CredentialOptions& options) {
    return written(run_credential(options, STDIN_FILENO, std::cout, std::cerr));
  });
}
}  // namespace

int main(int argc, char** argv) {
  if (!carpool::proxy::open_missing_standard_streams()) return carpool::proxy::kExitInternal;
  ::mallopt(M_MMAP_THRESHOLD, kOwnMapping);
  carpool::proxy::memory_reserve::install();
  carpool::exec::use_c_allocator_in_libuv();
  carpool::proxy::tls::use_c_allocator_in_openssl();
  std::signal(SIGPIPE, SIG_IGN);  // a closed peer is reported as an error value instead of a signal
  // As the first process of a container it gets the orphans there, and has no children of its own.
  if (::getpid() == 1) std::signal(SIGCHLD, SIG_IGN);
  if (const std::optional<int> code = run_programs(argc, argv)) return *code;
  if (const std::optional<int> code = carpool::proxy::cli::run(argc, argv, std::cout, std::cerr)) return written(*code);
  const auto options = carpool::proxy::config::parse_options(argc, argv);
  if (const auto* complaint = std::get_if<std::string>(&options)) {
    std::fprintf(stderr, "carpool: %s\n", complaint->c_str());
    return carpool::proxy::kExitConfiguration;
  }
  carpool::proxy::config::Options known = std::get<carpool::proxy::config::Options>(options);
  // A health probe must not depend on files that only the proxy reads.
  using carpool::proxy::config::Command;
  if (known.command != Command::health) known.check = known.command == Command::run ? &check_loaded : &check_files;
  return dispatch(known);
}
