#include "proxy/commands/ca/ca.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <ostream>

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/commands/ca/environment.h"
#include "proxy/commands/cli/cli.h"
#include "proxy/config/exit_code.h"
#include "proxy/net/tls/authority.h"
#include "proxy/net/tls/authority_files.h"
#include "proxy/net/tls/trust_bundle.h"

namespace carpool::proxy {
namespace {

using Outcome = std::string;  // an error text; empty: done

std::string day_of(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  std::array<char, 16> text{};
  ::gmtime_r(&seconds, &parts);
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts)};
}

std::string listed(const std::vector<std::string>& hosts) {
  std::string out;
  for (const std::string& host : hosts) out.append(out.empty() ? "" : ", ").append(host);
  return out;
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Lets one process at a time continue, so that two that start together create one authority, and none renames a file
// that the other one is writing.
Outcome lock(const std::string& dir, Fd& folder) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return dir + ": " + error.message();
  folder.reset(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::flock(folder.get(), LOCK_EX) == 0) return {};
  return dir + ": " + std::generic_category().message(errno);
}

// Returns why the authority in the folder does not serve `hosts`, or an empty text if it does.
Outcome why_unusable(const CaOptions& options, WallTime& end) {
  const auto authority = tls::Authority::load(options.dir);
  if (!authority) return authority.fault().detail;
  for (const std::string& host : options.hosts) {
    const Status covered = (*authority)->covers(host);
    if (covered) continue;
    const bool outside = covered.fault().kind == FaultKind::tls_certificate;
    return options.dir + "/ca.pem: " + (outside ? "does not cover " + host : covered.fault().detail);
  }
  end = (*authority)->expires();
  return {};
}

// Keeps an existing authority whenever possible, because applications trust it.
Outcome init(const CaOptions& options, std::ostream& out) {
  Fd folder;
  if (Outcome error = lock(options.dir, folder); !error.empty()) return error;
  WallTime end;
  const std::string certificate = options.dir + "/ca.pem";
  if (!options.replace && exists(certificate)) {
    const Outcome why = why_unusable(options, end);
    if (why.empty()) {
      out << "kept " << certificate << ": it covers " << listed(options.hosts) << " until " << day_of(end) << '\n';
      return {};
    }
    return why + "; applications may trust it, so only --replace makes a new one";
  }
  const Status made = tls::create_authority(options.dir, options.hosts, std::chrono::hours(24) * options.days);
  if (!made) return made.fault().detail;
  if (Outcome why = why_unusable(options, end); !why.empty()) return why;
  out << "made " << certificate << " and " << options.dir << "/ca.key: an authority for " << listed(options.hosts)
      << " until " << day_of(end) << '\n';
  return {};
}

Outcome bundle(const CaOptions& options, std::ostream& out, std::ostream& err) {
  const std::string& into = options.trust.empty() ? options.dir : options.trust;
  Fd folder;
  if (Outcome error = lock(into, folder); !error.empty()) return error;
  const Result<tls::Bundle> made = tls::write_trust_bundle(options.dir, into);
  if (!made) return made.fault().detail;
  if (made->system == 0) err << "warning: the system has no certificates, so the bundle contains only the authority\n";
  out << "made " << into << "/bundle.pem and " << into << "/bundle.p12: " << made->system
      << " authorities of the system, and " << options.dir << "/ca.pem\n";
  return {};
}

// An environment that names missing files breaks applications: they trust no authority at all. Nothing is printed then,
// because a shell runs `eval "$(carpool ca env DIR)"` with any exit code.
Outcome why_no_environment(const CaOptions& options, const std::string& dir) {
  for (const std::string_view name : {kAuthorityFile, kBundleFile, kJavaBundleFile}) {
    const std::string path = std::string(dir).append(name);
    std::error_code error;
    if (std::filesystem::exists(path, error)) continue;
    if (error) return path + ": " + error.message();
    const bool authority = exists(options.dir + "/ca.key");
    return path + ": does not exist, so nothing is printed; write it first: carpool ca bundle " +
           (authority
                ? options.dir
                : "AUTHORITY --trust " + options.dir + ", with the folder that `carpool ca init` made as AUTHORITY");
  }
  return {};
}

Outcome env(const CaOptions& options, std::ostream& out) {
  std::error_code error;
  const std::string dir = std::filesystem::absolute(options.dir, error).lexically_normal().string();
  if (error) return options.dir + ": " + error.message();
  if (dir.find('\n') != std::string::npos) return "the name of the folder contains a line break";
  if (Outcome why = why_no_environment(options, dir); !why.empty()) return why;
  out << environment_of(dir, options.plain);
  return {};
}

int help(std::ostream& out, std::ostream& err) {
  constexpr std::array<const char*, 3> kWords{"carpool", "ca", "--help"};
  return cli::run(static_cast<int>(kWords.size()), kWords.data(), out, err).value_or(1);
}

}  // namespace

int run_ca(const CaOptions& options, std::ostream& out, std::ostream& err) {
  using Action = CaOptions::Action;
  if (options.action == Action::help) return help(out, err);
  Outcome error;
  if (options.action == Action::init) error = init(options, out);
  const bool bundles = options.action == Action::bundle || (options.action == Action::init && !options.trust.empty());
  if (error.empty() && bundles) error = bundle(options, out, err);
  if (options.action == Action::env) error = env(options, out);
  if (error.empty()) return kExitClean;
  err << "carpool: " << error << '\n';
  return kExitConfiguration;
}

}  // namespace carpool::proxy
