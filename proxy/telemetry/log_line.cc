#include "proxy/telemetry/log_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>

#include "base/ascii.h"
#include "base/utf8.h"

namespace carpool::proxy::log {
namespace {

bool plain(char c) {
  return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}
// Returns true if the value needs no quotes in text format.
bool bare(std::string_view value) {
  return !value.empty() &&
         std::all_of(value.begin(), value.end(), [](char c) { return plain(c) && c != ' ' && c != '='; });
}

template <class Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

// Appends `value` with `width` digits, then the character `behind`.
char* put_digits(char* to, unsigned value, std::size_t width, char behind) {
  for (std::size_t i = width; i > 0; --i, value /= 10) to[i - 1] = static_cast<char>('0' + value % 10);
  to[width] = behind;
  return to + width + 1;
}

void append_unit(std::string& out, unsigned unit) {
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kLowerHex[unit >> shift & 15U];
}

// Appends the first character as JSON does: by its number, in two units beyond U+FFFF. A byte that begins no character
// stands for itself. Returns the size of what was appended.
std::size_t append_first_escaped(std::string& out, std::string_view value) {
  const auto byte = [value](std::size_t at) { return static_cast<unsigned char>(value[at]); };
  const std::size_t size = std::max<std::size_t>(first_character(value), 1);
  unsigned code = size == 1 ? byte(0) : byte(0) & (0xFFU >> (size + 1));
  for (std::size_t at = 1; at < size; ++at) code = code << 6U | (byte(at) & 0x3FU);
  if (code <= 0xFFFF) {
    append_unit(out, code);
  } else {
    append_unit(out, 0xD800U + ((code - 0x10000U) >> 10U));
    append_unit(out, 0xDC00U + (code & 0x3FFU));
  }
  return size;
}

void append_quoted(std::string& out, std::string_view value) {
  out += '"';
  append_escaped(out, value);
  out += '"';
}

}  // namespace

void append_escaped(std::string& out, std::string_view value) {
  while (!value.empty()) {
    const auto special = std::find_if_not(value.begin(), value.end(), plain);
    const auto good = static_cast<std::size_t>(special - value.begin());
    out.append(value.substr(0, good));
    if (good == value.size()) return;
    std::size_t size = 1;
    if (*special == '"' || *special == '\\') {
      out += '\\';
      out += *special;
    } else if (*special == '\n') {
      out += "\\n";
    } else {
      size = append_first_escaped(out, value.substr(good));
    }
    value.remove_prefix(good + size);
  }
}

void append_time(std::string& out, WallTime time) {
  const auto since = time.time_since_epoch();
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(since).count();
  const std::time_t second = static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(since).count());
  std::tm parts{};
  gmtime_r(&second, &parts);
  std::array<char, 32> text;
  char* to = put_digits(text.data(), static_cast<unsigned>(parts.tm_year + 1900), 4, '-');
  to = put_digits(to, static_cast<unsigned>(parts.tm_mon + 1), 2, '-');
  to = put_digits(to, static_cast<unsigned>(parts.tm_mday), 2, 'T');
  to = put_digits(to, static_cast<unsigned>(parts.tm_hour), 2, ':');
  to = put_digits(to, static_cast<unsigned>(parts.tm_min), 2, ':');
  to = put_digits(to, static_cast<unsigned>(parts.tm_sec), 2, '.');
  to = put_digits(to, static_cast<unsigned>(ms - static_cast<std::int64_t>(second) * 1000), 3, 'Z');
  out.append(text.data(), to);
}

// Level and module are constants of the program and need no escaping.
Line::Line(std::string& out, Format format, WallTime time, std::string_view level, std::string_view module)
    : out_(out), format_(format) {
  if (format_ == Format::json) {
    out_ += R"({"time":")";
    append_time(out_, time);
    out_.append(R"(","level":")").append(level).append(R"(","module":")").append(module) += '"';
    return;
  }
  append_time(out_, time);
  out_ += ' ';
  out_ += level;
  out_.append(level.size() < 5 ? 6 - level.size() : 1, ' ');
  out_ += module;
}

void Line::key(std::string_view name) {
  const bool json = format_ == Format::json;
  out_ += json ? ',' : ' ';
  if (json) out_ += '"';
  out_ += name;
  if (json) out_ += '"';
  out_ += json ? ':' : '=';
}

void Line::text(std::string_view name, std::string_view value) {
  key(name);
  if (format_ == Format::text && bare(value)) {
    out_ += value;
  } else {
    append_quoted(out_, value);
  }
}

void Line::word(std::string_view name, std::string_view value) {
  key(name);
  if (format_ == Format::json) out_ += '"';
  out_ += value;
  if (format_ == Format::json) out_ += '"';
}

void Line::number(std::string_view name, std::uint64_t value) {
  key(name);
  append_number(out_, value);
}

void Line::number(std::string_view name, std::int64_t value) {
  key(name);
  append_number(out_, value);
}

void Line::number(std::string_view name, double value) {
  key(name);
  if (std::isfinite(value)) {
    append_number(out_, value);
  } else {
    out_ += "null";  // JSON cannot represent infinity
  }
}

void Line::flag(std::string_view name, bool value) {
  key(name);
  out_ += value ? "true" : "false";
}

void Line::seconds(std::string_view name, Duration value) {
  key(name);
  const auto us = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(value).count());
  append_number(out_, us / 1'000'000);
  std::array<char, 8> fraction;
  put_digits(fraction.data(), static_cast<unsigned>(us % 1'000'000), 6, ' ');
  out_ += '.';
  out_.append(fraction.data(), 6);
}

void Line::field(const Field& field) {
  if (const auto* s = std::get_if<std::string_view>(&field.value)) return text(field.key, *s);
  if (const auto* i = std::get_if<std::int64_t>(&field.value)) return number(field.key, *i);
  if (const auto* u = std::get_if<std::uint64_t>(&field.value)) return number(field.key, *u);
  if (const auto* d = std::get_if<double>(&field.value)) return number(field.key, *d);
  if (const auto* b = std::get_if<bool>(&field.value)) return flag(field.key, *b);
}

void Line::message(std::string_view value) {
  if (format_ == Format::json) return text("message", value);
  out_ += ": ";
  append_escaped(out_, value);
}

void Line::end() {
  out_ += format_ == Format::json ? "}\n" : "\n";
}

}  // namespace carpool::proxy::log
