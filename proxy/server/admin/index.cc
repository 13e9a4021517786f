#include "proxy/server/admin/index.h"

#include <sys/random.h>

#include <proxy_admin_page.h>
#include <proxy_admin_plots.h>
#include <proxy_admin_plots_style.h>
#include <array>
#include <string>

#include "base/ascii.h"

namespace carpool::proxy::admin {
namespace {

constexpr std::string_view kNoncePlace = "__NONCE__";

// Returns an unpredictable number, new in every response. The browser runs only scripts that carry it.
std::string draw_nonce() {
  std::array<unsigned char, 16> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0) return {};
  std::string text;
  for (const unsigned char byte : bytes) append_hex(text, static_cast<char>(byte));
  return text;
}

void replace_all(std::string& page, std::string_view place, std::string_view text) {
  for (std::size_t at = page.find(place); at != std::string::npos; at = page.find(place, at + text.size())) {
    page.replace(at, place.size(), text);
  }
}

std::string page_with(const std::string& nonce) {
  std::string page(kPage);
  page.reserve(page.size() + kPlots.size() + kPlotStyle.size() + 4 * nonce.size());
  replace_all(page, kNoncePlace, nonce);
  replace_all(page, "__UPLOT_CSS__", kPlotStyle);
  replace_all(page, "__UPLOT_JS__", kPlots);
  return page;
}

}  // namespace

Response index_response() {
  const std::string nonce = draw_nonce();
  if (nonce.empty()) return error_response(503, "the system returned no random bytes");
  Response response = text_response(200, "text/html; charset=utf-8", page_with(nonce));
  response.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'nonce-" + nonce + "'; style-src 'nonce-" + nonce +
          "'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  return response;
}

}  // namespace carpool::proxy::admin
