#include "proxy/admin/index.h"

#include <array>

namespace carpool::proxy::admin {
namespace {

using pool::Shown;

constexpr std::string_view kHead =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>carpool</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{text-align:right;padding:.2rem .6rem;border-bottom:1px solid #ccc}"
    "th:first-child,td:first-child{text-align:left}</style>\n<h1>carpool</h1>\n";

constexpr std::array<std::string_view, 7> kLinks{"/pools", "/metrics", "/pool/metrics", "/readyz",
                                                 "/livez", "/version", "/config"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || c == '-' || c == '.' || c == '_') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

void add_cell(std::string& row, std::uint64_t value) {
  row += "<td>" + std::to_string(value) + "</td>";
}

std::string row_of(const PoolFacts& pool) {
  const auto& s = pool.snapshot;
  std::string row =
      "<tr><td><a href=\"/pools/" + percent_encoded(pool.origin) + "\">" + escaped(pool.origin) + "</a></td>";
  add_cell(row, s.of(Shown::idle));
  add_cell(row, s.of(Shown::borrowed));
  add_cell(row, s.of(Shown::connecting));
  add_cell(row, s.waiting);
  add_cell(row, s.size);
  add_cell(row, s.borrows);
  add_cell(row, s.created);
  return row + "</tr>\n";
}

}  // namespace

Answer index_answer(const AdminView& view) {
  std::string body(kHead);
  body += "<p>Version " + escaped(view.build().version) + (view.not_ready().empty() ? ", ready." : ", not ready.") +
          "</p>\n<table><tr><th>origin</th><th>idle</th><th>borrowed</th><th>connecting</th><th>waiting</th>"
          "<th>size</th><th>borrows</th><th>opened</th></tr>\n";
  for (const PoolFacts& pool : view.pools()) body += row_of(pool);
  body += "</table>\n<p>";
  for (const std::string_view link : kLinks) {
    body.append("<a href=\"").append(link).append("\">").append(link).append("</a> ");
  }
  Answer answer = text_answer(200, "text/html; charset=utf-8", body + "</p>\n</html>\n");
  answer.headers.emplace_back("Content-Security-Policy",
                              "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  return answer;
}

}  // namespace carpool::proxy::admin
