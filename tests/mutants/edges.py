"""Defects of what surrounds the requests: the history and the compression of the admin endpoint, keys of tickets, addresses and
the rules for them, turns of clients, what logs, spans and metrics say, and the measured load."""
from mutant import m

NET, EXCHANGE, SERVER, PLANE, TELEMETRY, CONFIG, METRICS, ORIGINS, HTTP = (
    "net_tests", "exchange_tests", "server_tests", "downstream_tests", "telemetry_tests", "config_tests", "metrics_tests", "upstream_tests", "http_tests")
H, K, R, G, P = ("proxy/server/admin/history.cc", "proxy/net/tls/ticket_keys.cc", "proxy/net/address_range.cc",
                 "proxy/net/egress_policy.cc", "proxy/config/egress_rule.cc")
T, O, L, M = ("proxy/http/redact.cc", "proxy/telemetry/otlp_spans.cc", "proxy/telemetry/combined_line.cc", "metrics/prometheus_text.cc")

MUTANTS = [
    # ---- the history of the admin endpoint ----
    m("a counter that shrank is a flood of requests", H, "now > before ? now - before : 0", "now - before", SERVER),
    m("the first reading is a point", H, "  if (first) return;\n", "", SERVER),
    m("a point has the counters themselves", H, "difference(now, entry.before)", "now", SERVER),
    m("origins fill the memory of the history", H, "rings_ < kMaxOrigins", "true", SERVER),
    m("an origin without a pool is kept for ever", H, "entry.absent >= kPoints", "false", SERVER),
    m("an origin with a pool is forgotten", H, "pool == nullptr ? entry.absent + 1 : 0", "entry.absent + 1", SERVER),
    m("the whole has no state of the pools", H, "set_gauges(whole, pool);", "", SERVER),
    m("the points of a full ring are out of order", H, "found.push_back(points[i % kPoints]);", "found.push_back(points[i - (count - kept)]);", SERVER),
    m("the last minute is all that is known", H, "static_cast<std::size_t>(time / kEvery)", "kPoints", SERVER),
    m("a quantile is the end of its bucket", H, "low + (high - low) * (wanted - before) / here", "high", SERVER),
    m("names of origins that were used once stay", H, "entry.ring || entry.before.requests > 0 ? std::next(at) : entries_.erase(at)", "std::next(at)", SERVER),
    # ---- compressed answers ----
    m("q=0 accepts gzip", "proxy/server/admin/gzip.cc", "(coding == \"*\" ? any : named) = !none;", "(coding == \"*\" ? any : named) = true;", SERVER),
    m("* stands for a coding that the list names", "proxy/server/admin/gzip.cc", "named.value_or(any.value_or(false))", "any.value_or(named.value_or(false))", SERVER),
    m("a small answer is compressed", "proxy/server/admin/gzip.cc", "response.body.size() >= kWorthIt && accepts_gzip(request)", "accepts_gzip(request)", SERVER),
    m("a piece of an answer is held back", "proxy/server/admin/gzip.cc", "last ? Z_FINISH : Z_SYNC_FLUSH", "last ? Z_FINISH : Z_NO_FLUSH", SERVER),
    m("a compressed answer begins with the state of the one before", "proxy/server/admin/gzip.cc", "ready_ && deflateReset(&stream_) == Z_OK", "ready_", SERVER),
    # ---- keys of tickets ----
    m("a key of tickets is never replaced", K, "current_ && now - current_->made < kRotation", "current_.has_value()", NET),
    m("a key that was replaced is lost", K, "previous_ = current_;", "", NET),
    m("a key outlives its tickets", K, "*one && now - (*one)->made >= kRotation + kTicketLife", "false", NET),
    m("an old ticket is not renewed", K, "one == &previous_ || now - (*one)->made >= kRotation", "false", NET),
    m("each ticket is renewed at once", K, "one == &previous_ || now - (*one)->made >= kRotation", "true", NET),
    # ---- addresses and the rules for them ----
    m("an address inside an IPv6 one is not seen", R, "kRules[i].matches_address(bytes, address.port())", "false", NET),
    m("the wildcard is another machine", R, "if (!real.wildcard()) return real;", "return real;", NET),
    m("a listener on all addresses is reached by loopback alone", R, "return is_local(target);", "return target.loopback();", NET),
    m("any port of this machine is a listener's", R, "!listener.ip() || target.port() != listener.port()", "!listener.ip()", NET),
    m("a socket file has one spelling", R, "one.st_dev == other.st_dev && one.st_ino == other.st_ino", "false", NET),
    m("no address is protected", R, "if (at == kRules.end()) return std::nullopt;", "return std::nullopt;", NET),
    m("a rule for a large network allows a protected address", G, "rule.prefix >= range->prefix", "true", NET),
    m("an own listener is an origin", G, "any_reached(rule_set.own, address)", "false", NET),
    m("the admin address is an origin", G, "any_reached(rule_set.forbidden, address)", "false", NET),
    m("one reading of an address is judged", G, "if (auto status = never(rule_set, origin, reading); !status) return status;", "return never(rule_set, origin, reading);", NET),
    m("allow wins over deny", G, "if (any_name(rule_set.deny, origin)) return denied(origin, \"egress.deny\");\n  if (rule_set.default_allow || any_name(rule_set.allow, origin) || any_address(rule_set.allow, address)) return Done{};",
      "if (rule_set.default_allow || any_name(rule_set.allow, origin) || any_address(rule_set.allow, address)) return Done{};", NET),
    m("a network with another port allows a name", G, "(rule.port == 0 || rule.port == port)", "true", NET),
    m("*.name matches the name itself", P, "if (kind != Kind::subdomains || host.size() <= name.size() + 1 || !host.ends_with(name)) return false;",
      "if (kind != Kind::subdomains || !host.ends_with(name)) return false;\n  if (host == name) return true;", CONFIG),
    m("*.name matches any end", P, "host[host.size() - name.size() - 1] == '.'", "true", CONFIG),
    m("::/0 matches IPv4", P, "if (prefix < kMapped && mapped(address)) return false;", "", CONFIG),
    m("a prefix counts whole bytes", P, "if (prefix % 8 == 0) return true;", "return true;", CONFIG),
    m("listeners on any port are one", "proxy/config/resolve.cc", "any_port(listen.address) ? seen[listen.address]++ : 0", "0", CONFIG),
    m("an origin needs no uri", "proxy/config/read.cc", "!origin.origin.host.empty() || places_.invalid(key + \".uri\")", "places_.given(key + \".uri\") || places_.invalid(key + \".uri\")",
      CONFIG),
    m("a directly reached origin shows a parent's credentials", "proxy/config/check_origins.cc", "return origin.upstream.proxy.empty();", "return false;", CONFIG),
    m("a tcp origin shows what it refuses", "proxy/config/check_origins.cc",
      "return origin.origin.scheme == pool::Scheme::tcp && std::find(refused.begin(), refused.end(), key) != refused.end();", "return false;", CONFIG),
    m("a size that is written does not count", "proxy/config/resolve.cc", "pool.tcp_size = 0;", "", CONFIG),
    m("a tcp origin ignores its own tcp_size", "proxy/config/resolve.cc", "if (!own) origin.pool.tcp_size = all.tcp_size;", "origin.pool.tcp_size = all.tcp_size;", CONFIG),
    m("the size of all tcp origins is not that of one", "proxy/config/resolve.cc", "if (!own) origin.pool.tcp_size = all.tcp_size;", "", CONFIG),
    m("a prefix may be too long", P, "*value <= most", "true", CONFIG),
    m("a rule's port is not checked", P, "if (port != 0 && port != to_port) return false;\n  if (kind == Kind::any) return true;", "if (kind == Kind::any) return true;", CONFIG),
    # ---- addresses of an origin ----
    m("a dial goes to the address with more connections", "proxy/net/address_set.cc", "load(addresses[other]) < load(addresses[one]) ? other : one", "load(addresses[other]) < load(addresses[one]) ? one : other", NET),
    m("a connection that closed stays counted at its address", "proxy/net/address_set.cc", "  --place->open;\n", "", NET),
    # ---- turns of clients ----
    m("a loop's requests have no share", "proxy/downstream/request_pacer.cc", "if (left_ != 0) --left_;", "", PLANE),
    m("clients wait for ever", "proxy/downstream/request_pacer.cc", "if (!waiting_.empty()) run_soon();", "", PLANE,
      "the round ends before its clients do only after a request has begun, and note_begun() defers the next round itself"),
    m("a round has no end", "proxy/downstream/request_pacer.cc", "left_ != 0 && !waiting_.empty()", "!waiting_.empty()", PLANE),
    m("a priority that cannot be read is the highest", "proxy/exchange/priority_class.cc", "digit ? static_cast<unsigned>(value[2] - '0') : kUsual", "digit ? static_cast<unsigned>(value[2] - '0') : 0", EXCHANGE),
    m("a listener's class counts for nothing", "proxy/exchange/priority_class.cc", "if (own != classes.end()) return static_cast<std::uint8_t>(own - classes.begin());", "", EXCHANGE),
    # ---- what logs, spans and metrics say ----
    m("userinfo is written", T, "return at == std::string_view::npos ? Userinfo{} : Userinfo{begin, begin + at + 1};", "return {};", HTTP),
    m("an escaped name hides no secret", T, "text[size++] = ascii_lower(c);", "text[size++] = ascii_lower(name[i]);", HTTP),
    m("a secret after ; is written", T, "query.find_first_of(\"&;\")", "query.find_first_of(\"&\")", HTTP),
    m("a target of any length is written", T, "scratch.size() > most", "false", HTTP),
    m("a quote ends a field of a combined line", L, "c >= 0x20 && c < 0x7F && c != '\"' && c != '\\\\'", "c >= 0x20 && c < 0x7F && c != '\\\\'", TELEMETRY),
    m("a combined line has the client's port", L, "client.substr(0, colon)", "client", TELEMETRY),
    m("a span that begins a trace has a parent", O, "if (span.parent != 0) out.bytes(kParentSpanId, view(big_endian(span.parent)));", "out.bytes(kParentSpanId, view(big_endian(span.parent)));", TELEMETRY),
    m("an unknown method names a span", O, "known_method(span.method) ? span.method : \"_OTHER\"", "span.method", TELEMETRY),
    m("a span to an origin is a server's", O, "span.to_origin ? kClient : kServer", "kServer", TELEMETRY),
    m("a failed span has no status", O, "out.number(kCode, kError);", "", TELEMETRY),
    m("a target of any length is in a span", O, "cut(span.target, kMaxUrl)", "span.target", TELEMETRY),
    m("a full buffer takes spans", "proxy/telemetry/span_buffer.cc", "bytes.size() + otlp::kMaxSpan > std::min(limit_, bytes.capacity())", "false", TELEMETRY),
    m("a quote ends a label", M, "c == '\\\\' || c == '\"'", "c == '\\\\'", METRICS),
    m("the last bucket is missing", M, "if (!std::isinf(last)) bucket(\"+Inf\", metric.histogram.sample_count);", "", METRICS),
    m("infinity is a number of its own", M, "value < 0 ? \"-Inf\" : \"+Inf\"", "\"inf\"", METRICS),
    # ---- the measured load ----
    m("leases that touch overlap", "pool/policy/sizing.cc", "steps.emplace_back(begin + lasted, -1);", "steps.emplace_back(begin + lasted + Duration(1), -1);", "unit"),
    m("a night without requests counts", "pool/policy/sizing.cc", "borrow.arrived - until < kIdleGap", "true", "unit"),
    m("the 99th percentile is the median", "pool/policy/sizing.cc", "(all.size() * 99 + 99) / 100 - 1", "all.size() / 2", "unit"),
    m("two requests are a load", "pool/policy/sizing.cc", "borrows.size() < kMinBorrows", "borrows.size() < 2", "unit"),
    m("the size follows the mean alone", "pool/policy/sizing.cc", "return std::max(size, load.busy_p99);", "return size;", "unit"),
    # ---- descriptors ----
    m("clients that may never come take all descriptors", "proxy/upstream/fd_budget.cc", "std::min(clients, limit / 2) + kReserved", "clients + kReserved", ORIGINS),
    m("too few descriptors leave no connection", "proxy/upstream/fd_budget.cc", "limit > beside + kMinTotal ? limit - beside : kMinTotal", "limit > beside ? limit - beside : 0", ORIGINS),
]
