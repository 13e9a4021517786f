#include "pool/directory/explain.h"

#include <algorithm>
#include <cstdio>

#include "pool/directory/explain_size.h"
#include "pool/directory/phrases.h"

namespace carpool::pool {

namespace {
using phrases::number;
using phrases::time;

// Earlier closes followed the limits of their time, which may differ from those in force: each value is called today's.
std::string limit(std::string_view key, Duration now) {
  return std::string(key) + (now == Duration::zero() ? " (now none)" : " (now " + time(now) + ")");
}
std::string limit(std::string_view key, std::uint32_t now) {
  return std::string(key) + (now == 0 ? " (now none)" : " (now " + std::to_string(now) + ")");
}
std::string never(const ExplainSettings& c) {
  return std::string("pool.reuse = \"never\" (now ") + (c.single_use ? "in force)" : "not in force)");
}

// The pronouns that refer to the connections of a sentence.
struct Pronouns {
  bool one;
  std::string they, their, them, were;
};

Pronouns pronouns(std::uint64_t count) {
  if (count == 1) return {true, "it", "its", "it", "was"};
  return {false, "they", "their", "them", "were"};
}

std::string all_were_busy(const ExplainSettings& c) {
  return std::string("every open one that could serve the request was borrowed at that moment") +
         (c.maximize ? ", or for a later one, because of pool.maximize" : "");
}

std::string why_opened(OpenCause cause, const Pronouns& of, const Destination::Snapshot& s, const ExplainSettings& c) {
  switch (cause) {
    case OpenCause::first:
      return "nothing was open";
    case OpenCause::all_busy:
      return all_were_busy(c);
    case OpenCause::min_idle:
      return "fewer than " + limit("min_idle", c.min_idle) + " were idle";
    case OpenCause::warm_up:
      return "a warm-up requested " + of.them;
    case OpenCause::stale_found:
      return "the previous one had been idle for too long or was closed by the origin" +
             (s.learned_idle ? ", which is now believed to close idle connections after " + time(*s.learned_idle) : "");
    case OpenCause::expired:
      return "the previous one had reached its maximum age, " + limit("expire_time", c.expire_time);
    case OpenCause::max_usage:
      return "the previous one had served as many requests as " + limit("max_usage", c.max_usage) + " allowed";
    case OpenCause::streams_exhausted:
      return "no stream was left on the open ones";
    case OpenCause::loop_local:
      return "the requesting loop had none of its own";
    case OpenCause::policy:
      return "a request that must not be repeated (such as a POST) did not accept one that had been idle for long, "
             "or " +
             never(c) + " gives each a new one";
    case OpenCause::dns_changed:
      return "the origin's addresses changed";
    case OpenCause::health:
      return "a health check replaced one";
    case OpenCause::reconnect:
      return "an operator requested a reconnect";
    case OpenCause::replay:
      return "a request whose connection failed was retried on a new one";
    case OpenCause::tunnel:
      return of.one ? "a tunnel (CONNECT) took it" : "tunnels (CONNECT) take one each";
    case OpenCause::spread:
      return "an address of the origin had none, or fewer than the others";
  }
  return {};
}

std::string closed_idle(const Pronouns& of, const ExplainSettings& c) {
  return "had been idle for " + limit("idle_timeout", c.idle_timeout) +
         ", or for nearly as long as the origin was believed to keep " + of.them;
}

// Returns the predicate of connections that an operator, a setting or the end of the program closed.
std::string why_ordered(CloseCause cause, const Pronouns& of) {
  switch (cause) {
    case CloseCause::drained:
      return of.were + " drained by an operator";
    case CloseCause::reconnect:
      return of.were + " replaced because an operator requested a reconnect";
    case CloseCause::config_changed:
      return "did not fit the new configuration or the renewed certificates";
    case CloseCause::shutdown:
      return "ended with the program";
    default:
      return {};
  }
}

// Returns the predicate after "they" or "it".
std::string why_closed(CloseCause cause, const Pronouns& of, const Destination::Snapshot& s, const ExplainSettings& c) {
  switch (cause) {
    case CloseCause::expired:
      return "had reached " + of.their + " maximum age, " + limit("expire_time", c.expire_time);
    case CloseCause::idle:
      return closed_idle(of, c);
    case CloseCause::max_usage:
      return "had served as many requests as " + limit("max_usage", c.max_usage) + " allowed";
    case CloseCause::peer_closed:
      return of.were + " closed by the origin";
    case CloseCause::error:
      return "failed: " + of.their + " dial, or an exchange on " + of.them;
    case CloseCause::unhealthy:
      return "failed a health check, or " + of.their + " address was ejected";
    case CloseCause::surplus:
      return of.were + " more than needed" + (s.auto_size ? ", or than a lowered size" : "");
    case CloseCause::budget:
      return "gave " + of.their + " slot to another origin (pool.total)";
    case CloseCause::leak:
      return of.were + " not returned";
    case CloseCause::policy:
      return of.were + " closed by " + never(c) + ", by the egress rules, or after a request that was not sent";
    case CloseCause::dns_changed:
      return "led to an address to which the name no longer resolves";
    case CloseCause::goaway:
      return "received GOAWAY";
    case CloseCause::private_:
      return "had authenticated one client and ended with it";
    case CloseCause::tunnel_ended:
      return of.one ? "was a tunnel that ended" : "were tunnels that ended";
    case CloseCause::rebalanced:
      return "made room for " + std::string(of.one ? "one" : "some") + " to an address of the origin that had fewer";
    case CloseCause::drained:
    case CloseCause::reconnect:
    case CloseCause::config_changed:
    case CloseCause::shutdown:
      return why_ordered(cause, of);
  }
  return {};
}

template <std::size_t N>
std::vector<std::size_t> by_count(const std::array<std::uint64_t, N>& counts) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < N; ++i) {
    if (counts[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  return order;
}

std::string share(std::uint64_t part, std::uint64_t whole, std::string_view verb) {
  return std::to_string(part) + " of " + number(whole, "connection", "connections") + " " + pronouns(part).were + " " +
         std::string(verb);
}

void reuse(const Destination::Snapshot& s, std::vector<std::string>& lines) {
  if (s.borrows == 0 || s.created == 0) return;
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.1f", static_cast<double>(s.borrows) / static_cast<double>(s.created));
  lines.push_back(number(s.borrows, "borrow", "borrows") + " on " + number(s.created, "connection", "connections") +
                  (s.created == 1 ? "." : std::string(": each served ") + ratio + " on average."));
}

// The causes count dials, successful or not; the borrows are compared with the successful ones.
std::string counted_since(const Destination::Snapshot& s) {
  return "Counted since the pool began, " + phrases::age(*s.age) +
         " ago: " + number(s.opened_total(), "connection was dialed", "connections were dialed") + ", and " +
         number(s.created, "dial has succeeded.", "dials have succeeded.");
}

std::string why_they_wait(const Destination::Snapshot& s) {
  if (s.paused) return ".";
  if (s.waiting == s.waiting_for_place) return ": every place for tunnels is taken (max_tunnels).";
  if (s.alive() >= s.size) return ": the pool is at its size.";
  return s.starved ? ": the other origins have all connections of pool.total.max_connections." : ".";
}

std::string waiting(const Destination::Snapshot& s) {
  return number(s.waiting, "request waits", "requests wait") + " for a connection, the longest for " +
         time(s.max_wait) + why_they_wait(s);
}

// A pool exists once a request, a command or a setting has asked for it.
void nothing_opened(const Destination::Snapshot& s, std::vector<std::string>& lines) {
  const bool asked = s.paused || s.age || s.waiting != 0;
  lines.emplace_back(asked ? "No connection has been opened yet."
                           : "No connection has been opened yet, because there was no request.");
  if (s.waiting != 0) lines.push_back(waiting(s));
}

void present(const Destination::Snapshot& s, std::vector<std::string>& lines) {
  lines.push_back("Now " + std::to_string(s.alive()) + " of at most " + std::to_string(s.size) +
                  (s.alive() == 1 ? " is" : " are") + " open (" + std::to_string(s.of(ConnectionStatus::idle)) +
                  " idle); the peak was " + std::to_string(s.peak) + ".");
  if (s.waiting != 0) {
    lines.push_back(waiting(s));
  } else if (s.waited_at_size != 0) {
    lines.push_back(
        number(s.waited_at_size, "request", "requests") +
        " found the pool at its size and had to wait; `carpool advice ORIGIN` gives the size that the load requires.");
  }
}

std::string pause_of(const Destination::Snapshot::Paused& paused) {
  std::string line = paused.drains ? "An operator drained the origin " : "An operator paused the origin ";
  line += time(paused.age) + " ago: requests wait for a connection" +
          (paused.drains ? ", and every connection closes after its use; " : "; ");
  return line + (paused.left ? "this ends in " + time(*paused.left) + "." : "only `resume` ends this.");
}

std::string cool_down_of(const Destination::Snapshot::CoolingDown& cooling) {
  std::string line = "The origin answered " + std::to_string(cooling.status) + " with Retry-After, the first time " +
                     time(cooling.age) + " ago: requests wait for a connection; ";
  if (cooling.left != Duration::zero()) return line + "the first is sent in " + time(cooling.left) + ".";
  return line + "the response to the next request decides for the others.";
}

void causes(const Destination::Snapshot& s, const ExplainSettings& c, std::vector<std::string>& lines) {
  for (const std::size_t cause : by_count(s.opened)) {
    lines.push_back(share(s.opened[cause], s.opened_total(), "opened because ") +
                    why_opened(static_cast<OpenCause>(cause), pronouns(s.opened[cause]), s, c) + " (cause " +
                    std::string(kOpenCauseNames[cause]) + ").");
  }
  for (const std::size_t cause : by_count(s.closed)) {
    const Pronouns of = pronouns(s.closed[cause]);
    lines.push_back(share(s.closed[cause], s.closed_total(), "closed: ") + of.they + " " +
                    why_closed(static_cast<CloseCause>(cause), of, s, c) + " (cause " +
                    std::string(kCloseCauseNames[cause]) + ").");
  }
  for (const std::size_t reason : by_count(s.failures)) {
    lines.push_back(number(s.failures[reason], "dial or exchange", "dials or exchanges") + " failed (reason " +
                    std::string(kFailureReasonNames[reason]) + ").");
  }
}

void idle_limits(const Destination::Snapshot& s, std::vector<std::string>& lines) {
  if (s.learned_idle) {
    const bool retires = *s.effective_limit < *s.learned_idle;
    lines.push_back("The origin was observed to close connections that are idle for " + time(*s.learned_idle) +
                    (retires ? ": connections are retired after " + time(*s.effective_limit) + ", before it does."
                             : ": shorter than a second, so carpool does not close connections ahead of it."));
  }
  if (s.trust && *s.trust < Duration::zero()) {
    lines.push_back("It keeps no connection alive: a request that must not be repeated gets a new one.");
  } else if (s.trust && *s.trust < std::chrono::milliseconds(1)) {
    lines.emplace_back(
        "The origin closed a connection soon after its use: a request that must not be repeated gets a new one.");
  } else if (s.trust) {
    lines.push_back("A request that must not be repeated uses no connection that was idle for longer than " +
                    time(*s.trust) + ".");
  }
}
}  // namespace

std::vector<std::string> explain(const Destination::Snapshot& s, const ExplainSettings& c) {
  std::vector<std::string> lines;
  if (s.paused) lines.push_back(pause_of(*s.paused));
  if (s.cooling_down) lines.push_back(cool_down_of(*s.cooling_down));
  if (s.opened_total() == 0) {
    nothing_opened(s, lines);
    return lines;
  }
  if (s.age) lines.push_back(counted_since(s));
  causes(s, c, lines);
  if (s.undialed != 0) {
    lines.push_back(number(s.undialed, "request was", "requests were") +
                    " answered with the error of the last dial, without a dial of " +
                    (s.undialed == 1 ? "its" : "their") +
                    " own: a failing origin is dialed only a few times per second.");
  }
  if (s.probing) lines.push_back("The last dial failed: one probe at a time decides for all waiting requests.");
  reuse(s, lines);
  idle_limits(s, lines);
  if (s.leaks != 0) {
    lines.push_back(number(s.leaks, "lease was", "leases were") +
                    " lost, or held for longer than leak_timeout: see `carpool leaks`.");
  }
  present(s, lines);
  if (s.auto_size) explain_size(*s.auto_size, lines);
  return lines;
}

}  // namespace carpool::pool
