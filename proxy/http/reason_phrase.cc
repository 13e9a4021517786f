#include "proxy/http/reason_phrase.h"

#include <algorithm>
#include <array>
#include <utility>

namespace carpool::proxy::http {

namespace {
using Phrase = std::pair<std::uint16_t, std::string_view>;
constexpr std::array kPhrases = std::to_array<Phrase>({
    {200, "OK"},
    {202, "Accepted"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {508, "Loop Detected"},
});
}  // namespace

std::string_view reason_phrase(std::uint16_t status) {
  const auto found =
      std::find_if(kPhrases.begin(), kPhrases.end(), [status](const Phrase& p) { return p.first == status; });
  return found == kPhrases.end() ? "Internal Server Error" : found->second;
}

}  // namespace carpool::proxy::http
