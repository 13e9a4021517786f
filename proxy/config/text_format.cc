#include "proxy/config/text_format.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/ascii.h"
#include "base/open_to_read.h"
#include "pool/origin.h"
#include "proxy/config/config.h"
#include "proxy/config/egress_rule.h"
#include "proxy/config/group.h"
#include "proxy/config/request_url.h"
#include "proxy/config/token_url.h"
#include "proxy/http/redact.h"
#include "proxy/http/request_rule.h"

namespace carpool::proxy::config {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kMasked = "has a value that is hidden, as in a printed configuration";

std::string accept_unix_path(std::string_view address) {
  const std::string_view path = address.substr(kUnix.size());
  if (path.empty() || path.front() != '/') return "the path of a Unix socket is not absolute";
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return "the path of a Unix socket is longer than 107 bytes";
  return {};
}

// IP:PORT. canonical_origin() decides what is an address and normalizes it, so that equal addresses are equal texts.
std::string accept_ip_port(std::string& text, unsigned least_port) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.ends_with(']')) return "the port is missing";
  const auto port = number_in<std::uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) return "the port is not a number up to 65535";
  if (*port < least_port) return "the port is 0";
  auto host = pool::canonical_origin(pool::Scheme::tcp, text.substr(0, colon) + ":1");
  if (!host) return host.take_fault().detail;
  if (!host->is_ip_literal()) return "the host is a name, not an IP address";
  host->port = 1;
  std::string spelled = host->authority();
  text = spelled.substr(0, spelled.size() - 1) + std::to_string(*port);
  return {};
}

// ":3128", "*:3128" and "localhost:3128" are common elsewhere, but which addresses they name differs from program to
// program and from machine to machine.
std::string accept_listen(std::string& text) {
  if (text.starts_with(kUnix)) return accept_unix_path(text);
  const std::size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  const std::string port = colon == std::string::npos ? ':' + text : text.substr(colon);
  const bool number = port.size() > 1 && port.find_first_not_of("0123456789", 1) == std::string::npos;
  if (number && host == "localhost") return "`localhost` is a name, not an IP address: write \"127.0.0.1" + port + '"';
  if (number && (host.empty() || host == "*")) {
    return "names no IP address: write \"127.0.0.1" + port + "\" for this machine alone, or \"0.0.0.0" + port +
           "\" or \"[::]" + port + "\" for every interface";
  }
  return accept_ip_port(text, 0);
}
std::string accept_pinned(std::string& text) {
  return text.starts_with(kUnix) ? accept_unix_path(text) : accept_ip_port(text, 1);
}

std::string accept_uri(std::string& text) {
  auto origin = pool::parse_origin(text);
  if (!origin) return origin.take_fault().detail;
  text = origin->label();
  return {};
}

std::string accept_http_uri(std::string& text) {
  if (std::string error = accept_uri(text); !error.empty()) return error;
  return text.starts_with("http") ? "" : "a listener cannot have a tcp origin";
}

std::string accept_proxy_url(std::string& text) {
  constexpr std::string_view kHttp = "http";
  const std::size_t scheme = text.find("://");
  if (scheme == std::string::npos) return "has no scheme";
  const std::string_view before = std::string_view(text).substr(0, scheme);
  if (!std::ranges::equal(before, kHttp, {}, ascii_lower)) return "a proxy is reached over plain HTTP";
  return accept_uri(text);
}

// The value is stored like Origin::host: an IPv6 address has no brackets. That form is therefore accepted as well.
std::string accept_host(std::string& text) {
  const bool bare_v6 = std::count(text.begin(), text.end(), ':') > 1 && text.front() != '[';
  auto origin = pool::canonical_origin(pool::Scheme::http, bare_v6 ? '[' + text + ']' : text);
  if (!origin) return origin.take_fault().detail;
  if (!bare_v6 && text.back() != ']' && text.find(':') != std::string::npos) return "a port follows the host";
  text = origin->host;
  return {};
}

std::string accept_pattern(std::string& text) {
  auto rule = EgressRule::parse(text);
  return rule ? std::string() : rule.take_fault().detail;
}

std::string accept_network(std::string& text) {
  auto rule = EgressRule::parse(text);
  if (!rule) return rule.take_fault().detail;
  return rule->kind == EgressRule::Kind::network && rule->port == 0 ? "" : "is neither an address nor a network";
}

std::string accept_file(std::string& text) {
  const Result<Fd> file = open_to_read(text);
  return file ? std::string() : text + " cannot be read: " + file.fault().detail;
}

// Creates nothing: for a file that does not exist its folder must be writable.
std::string accept_log_file(std::string& text) {
  struct stat status {};
  if (stat(text.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return text + " is a directory";
    return access(text.c_str(), W_OK) == 0 ? std::string()
                                           : text + " cannot be written: " + std::generic_category().message(errno);
  }
  const std::size_t slash = text.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : text.substr(0, slash);
  if (access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return text + " cannot be created: " + std::generic_category().message(errno);
}

std::string accept_folder(std::string& text) {
  struct stat status {};
  if (stat(text.c_str(), &status) != 0 || access(text.c_str(), X_OK) != 0) {
    return text + " cannot be read: " + std::generic_category().message(errno);
  }
  return S_ISDIR(status.st_mode) ? std::string() : text + " is not a folder";
}

std::string accept_unix(std::string& text) {
  return text.starts_with("unix:") ? accept_listen(text) : "`" + text + "` is not a Unix socket";
}

std::string accept_leniency(std::string& text) {
  return text == "bare_lf" ? std::string() : "`" + text + "` is not known";
}

std::string accept_protocol(std::string& text) {
  return text == "h1" || text == "h2" ? std::string() : "`" + text + "` is not known";
}

// Restricted because the name of a class is a label value of metrics.
std::string accept_class(std::string& text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; };
  const bool good = !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), plain);
  return good ? std::string() : "`" + text + "` is not a valid class name";
}

std::string accept_mode(std::string& text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  const bool three = text.size() == 3 || (text.size() == 4 && text.front() == '0');
  if (!three || !std::all_of(text.begin(), text.end(), octal)) return "`" + text + "` is not a file mode";
  if (text.size() == 3) text.insert(0, 1, '0');
  return {};
}

std::string accept_group(std::string& text) {
  return find_group(text) ? std::string() : "the system has no group `" + text + "`";
}

std::string accept_rule(std::string& text) {
  auto rule = http::RequestRule::parse(text);
  return rule ? std::string() : "`" + text + "` " + rule.take_fault().detail;
}

// The reason must not contain the text, whose query may hold a secret.
std::string accept_token_url(std::string& text) {
  auto url = parse_token_url(text);
  if (!url) return url.take_fault().detail;
  return http::is_redacted(text) ? std::string(kMasked) : std::string();
}

std::string accept_otlp_endpoint(std::string& text) {
  auto url = parse_request_url(text);
  if (!url) return url.take_fault().detail;
  return url->path.find('?') == std::string::npos ? std::string() : "has a query";
}

std::string accept_visible(std::string& text) {
  constexpr std::size_t kMaxText = 1024;
  const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7F; });
  return visible && text.size() <= kMaxText ? std::string() : "is too long, or not visible ASCII";
}

std::string accept_resource(std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return "`" + text + "` has no key";
  if (equals > kMaxAttributeKey) return "the key of `" + text + "` is too long";
  return accept_visible(text);
}

std::string accept_retry(std::string& text) {
  if (text == "retriable-4xx" || text == "reset" || text == "connect-failure") return {};
  const bool status = text.size() == 3 && (text[0] == '4' || text[0] == '5') &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return status ? std::string() : "`" + text + "` is neither a condition nor a status from 400 to 599";
}

// Only safe methods (RFC 9110 §9.2.1): carpool sends a probe on its own, repeatedly.
std::string accept_probe(std::string& text) {
  const std::size_t space = text.find(' ');
  const std::string method = text.substr(0, space);
  if (method != "OPTIONS" && method != "HEAD" && method != "GET") return "the method is not OPTIONS, HEAD or GET";
  const std::string target = space == std::string::npos ? std::string() : text.substr(space + 1);
  if (target == "*") return method == "OPTIONS" ? std::string() : "only OPTIONS may have the target `*`";
  const bool printable = std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (http::is_redacted(target)) return std::string(kMasked);
  if (target.starts_with('/') && printable) return {};
  std::string scratch;
  return std::string("`").append(http::redacted(target, scratch)).append("` is not a path");
}

}  // namespace

const TextFormat kListenAddress{R"("IP:PORT", "[IPv6]:PORT" or "unix:/path")", accept_listen};
const TextFormat kUnixAddress{R"("unix:/path")", accept_unix};
const TextFormat kPinnedAddress{R"("IP:PORT", "[IPv6]:PORT" or "unix:/path")", accept_pinned};
const TextFormat kOriginUri{R"("https://host", "http://host:port" or "tcp://host:port" with no path)", accept_uri};
const TextFormat kHttpOrigin{R"("https://host" or "http://host:port" with no path)", accept_http_uri};
const TextFormat kProxyUrl{R"("http://host:port" with no path, user or password)", accept_proxy_url};
const TextFormat kHostName{"a host without scheme and port", accept_host};
const TextFormat kEgressPattern{R"("*.example.com", "example.com:443", "10.0.0.0/8" or "[fd00::]/8:443")",
                                accept_pattern};
const TextFormat kNetwork{R"("192.0.2.1", "10.0.0.0/8" or "fd00::/8")", accept_network};
const TextFormat kReadableFile{"a file that carpool may read", accept_file, true, true};
const TextFormat kWritableFile{"a file that carpool may write", accept_log_file, true, true};
const TextFormat kFolder{"a folder that `carpool ca init` made", accept_folder, true, true};
const TextFormat kProtocol{R"("h1" or "h2")", accept_protocol};
const TextFormat kLeniency{R"("bare_lf")", accept_leniency};
const TextFormat kRetryCondition{R"("503" or another status, "retriable-4xx", "reset" or "connect-failure")",
                                 accept_retry};
const TextFormat kClassName{"up to 32 of a-z, 0-9, _ and -", accept_class};
const TextFormat kFileMode{R"(an octal file mode, such as "0660")", accept_mode};
const TextFormat kGroup{"the name of a group or its number", accept_group, true};
const TextFormat kRequestRule{R"("GET /v1/*", "POST /orders" or "* /public/*")", accept_rule};
const TextFormat kTokenUrl{R"("https://host/path")", accept_token_url, false, false, true};
const TextFormat kOtlpEndpoint{R"("http://host:port" or "https://host", with or without a path)", accept_otlp_endpoint};
const TextFormat kResourceAttribute{R"("key=value" of visible ASCII, the key at most 64 characters)", accept_resource};
const TextFormat kVisibleText{"up to 1024 visible ASCII characters", accept_visible};
const TextFormat kProbe{R"("OPTIONS *", "HEAD /path" or "GET /path")", accept_probe, false, false, true};

bool unix_address(std::string_view address) {
  return address.starts_with(kUnix);
}

bool loopback_address(std::string_view address) {
  return address.starts_with("127.") || address.starts_with("[::1]:") || address.starts_with("[::ffff:127.");
}

bool any_port(std::string_view address) {
  return !unix_address(address) && address.ends_with(":0");
}

}  // namespace carpool::proxy::config
