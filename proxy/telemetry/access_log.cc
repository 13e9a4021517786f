#include "proxy/telemetry/access_log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

#include "proxy/http/redact.h"
#include "proxy/telemetry/combined_line.h"
#include "proxy/telemetry/log_line.h"
#include "proxy/telemetry/log_output.h"
#include "proxy/telemetry/wall_clock.h"

namespace carpool::proxy::log {
namespace {

constexpr std::size_t kChunk = std::size_t{16} * 1024;
constexpr std::size_t kMaxMethod = 32;
constexpr std::size_t kMaxFault = 512;

constexpr std::size_t kTag = 4;

// Returns a random tag for this process, so that requests of different processes have different ids. Its alphabet
// contains no letter that resembles a digit.
std::string_view process_tag() {
  static const std::array<char, kTag> tag = [] {
    constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
    std::array<char, kTag> drawn;
    std::random_device device;
    for (char& letter : drawn) letter = kLetters[device() % kLetters.size()];
    return drawn;
  }();
  return {tag.data(), tag.size()};
}

// Formats an id such as "k7q2-0-15": the process tag, the loop, and the number of the request on that loop.
std::string_view request_id(const AccessEntry& entry, std::array<char, 64>& text) {
  char* const end = text.data() + text.size();
  char* to = std::copy(process_tag().begin(), process_tag().end(), text.data());
  *to++ = '-';
  to = std::to_chars(to, end, entry.loop).ptr;
  *to++ = '-';
  to = std::to_chars(to, end, entry.request).ptr;
  return {text.data(), static_cast<std::size_t>(to - text.data())};
}

void append_entry(Line& line, const AccessEntry& entry, std::string_view target) {
  std::array<char, 64> id;
  line.word("request", request_id(entry, id));
  line.text("client", entry.client);
  if (!entry.protocol.empty()) line.word("client_protocol", entry.protocol);
  if (!entry.tls.empty()) line.word("client_tls", entry.tls);
  if (!entry.user.empty()) line.text("user", entry.user);
  line.text("method", entry.method.substr(0, kMaxMethod));
  line.text("target", target);
  if (!entry.origin.empty()) line.text("origin", entry.origin);
  line.number("status", std::uint64_t{entry.status});
  if (entry.grpc_status) line.number("grpc_status", std::uint64_t{*entry.grpc_status});
  line.number("bytes_in", entry.bytes_in);
  line.number("bytes_out", entry.bytes_out);
  if (entry.connection != 0) {
    line.number("connection", entry.connection);
    line.number("reuse", std::uint64_t{entry.reuse});
    line.word("upstream_protocol", entry.upstream_protocol);
    if (!entry.upstream_tls.empty()) line.word("upstream_tls", entry.upstream_tls);
  }
  if (entry.waited) line.seconds("wait_seconds", *entry.waited);
  if (entry.upstream) line.seconds("upstream_seconds", *entry.upstream);
  line.seconds("total_seconds", entry.total);
  if (!entry.opened.empty()) line.word("opened", entry.opened);
  if (entry.retries != 0) line.number("retries", std::uint64_t{entry.retries});
  if (!entry.retried.empty()) line.word("retried", entry.retried);
  if (!entry.hedge.empty()) line.word("hedge", entry.hedge);
  if (!entry.unrepeated.empty()) line.text("not_repeated", entry.unrepeated);
  if (entry.intercepted) line.flag("intercepted", true);
  if (!entry.tunnelled.empty()) line.text("not_intercepted", entry.tunnelled);
  if (!entry.trace.empty()) line.text("trace_id", entry.trace);
  if (!entry.fault.empty()) line.text("fault", entry.fault.substr(0, kMaxFault));
}

}  // namespace

AccessLog::AccessLog(Format format) : format_(format) {
  wall_ = wall_clock_offset();
}

bool AccessLog::write(const AccessEntry& entry) {
  const bool first = buffer_.empty();
  const auto wall = std::chrono::duration_cast<WallTime::duration>(entry.began.time_since_epoch() + wall_);
  if (format_ == Format::combined) {
    append_combined(buffer_, entry, WallTime(wall), http::redacted(entry.target, scratch_),
                    http::redacted(entry.referer, referer_));
  } else {
    Line line(buffer_, format_, WallTime(wall), "info", "access");
    append_entry(line, entry, http::redacted(entry.target, scratch_));
    line.end();
  }
  ++lines_;
  if (buffer_.size() < kChunk) return first;
  flush();
  return false;
}

void AccessLog::flush() {
  submit_access(buffer_, lines_);
  buffer_.clear();
  lines_ = 0;
  wall_ = wall_clock_offset();
}

}  // namespace carpool::proxy::log
