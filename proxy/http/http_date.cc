#include "proxy/http/http_date.h"

#include <algorithm>
#include <array>

namespace carpool::proxy::http {

namespace {
using std::chrono::seconds;

constexpr std::size_t kLongest = 64;   // of a value: the longest date has 33 characters
constexpr std::size_t kDateSize = 29;  // of the preferred format

// Reads a text from its front; after the first mismatch it consumes nothing more.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool whole() const { return good_ && rest_.empty(); }
  bool good() const { return good_; }

  Scanner& skip(std::string_view word) {
    good_ = good_ && rest_.starts_with(word);
    if (good_) rest_.remove_prefix(word.size());
    return *this;
  }
  // Reads exactly `digits` digits; a blank may take the place of the first.
  Scanner& number(int& into, std::size_t digits, bool blank = false) {
    std::size_t from = blank && rest_.starts_with(' ') ? 1 : 0;
    good_ = good_ && rest_.size() >= digits;
    into = 0;
    for (; good_ && from < digits; ++from) {
      good_ = rest_[from] >= '0' && rest_[from] <= '9';
      into = into * 10 + (rest_[from] - '0');
    }
    if (good_) rest_.remove_prefix(digits);
    return *this;
  }
  template <std::size_t N>
  Scanner& word(int& into, const std::array<std::string_view, N>& words) {
    const auto* const found =
        std::find_if(words.begin(), words.end(), [this](std::string_view one) { return rest_.starts_with(one); });
    good_ = good_ && found != words.end();
    if (!good_) return *this;
    into = static_cast<int>(found - words.begin());
    return skip(*found);
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

constexpr std::array<std::string_view, 7> kDays{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
constexpr std::array<std::string_view, 7> kWholeDays{"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                     "Friday", "Saturday", "Sunday"};
constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct Moment {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  Scanner& clock(Scanner& from) { return from.number(hour, 2).skip(":").number(minute, 2).skip(":").number(second, 2); }
  std::optional<std::chrono::sys_seconds> time() const {
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month) + 1),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;  // 60: a leap second
    return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) + seconds(second);
  }
};

// Parses "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<std::chrono::sys_seconds> imf_date(std::string_view text) {
  Scanner in(text);
  Moment at;
  int day_name = 0;
  in.word(day_name, kDays).skip(", ").number(at.day, 2).skip(" ").word(at.month, kMonths).skip(" ");
  at.clock(in.number(at.year, 4).skip(" ")).skip(" GMT");
  return in.whole() ? at.time() : std::nullopt;
}

// Parses "Sunday, 06-Nov-94 08:49:37 GMT". The years 70 to 99 are in the past, because no pause lasts decades.
std::optional<std::chrono::sys_seconds> rfc850_date(std::string_view text) {
  Scanner in(text);
  Moment at;
  int day_name = 0;
  in.word(day_name, kWholeDays).skip(", ").number(at.day, 2).skip("-").word(at.month, kMonths).skip("-");
  at.clock(in.number(at.year, 2).skip(" ")).skip(" GMT");
  at.year += at.year < 70 ? 2000 : 1900;
  return in.whole() ? at.time() : std::nullopt;
}

// Parses "Sun Nov  6 08:49:37 1994".
std::optional<std::chrono::sys_seconds> asctime_date(std::string_view text) {
  Scanner in(text);
  Moment at;
  int day_name = 0;
  in.word(day_name, kDays).skip(" ").word(at.month, kMonths).skip(" ").number(at.day, 2, true).skip(" ");
  at.clock(in).skip(" ").number(at.year, 4);
  return in.whole() ? at.time() : std::nullopt;
}
}  // namespace

std::optional<std::chrono::sys_seconds> parse_date(std::string_view text) {
  if (text.size() > kLongest) return std::nullopt;
  if (const auto at = imf_date(text)) return at;
  if (const auto at = rfc850_date(text)) return at;
  return asctime_date(text);
}

namespace {
char* put(char* to, std::string_view text) {
  return std::copy(text.begin(), text.end(), to);
}

// `digits` of them, with leading zeros.
char* put(char* to, unsigned value, std::size_t digits) {
  for (std::size_t i = digits; i-- > 0; value /= 10) to[i] = static_cast<char>('0' + value % 10);
  return to + digits;
}
}  // namespace

std::string date_text(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<seconds>(time - day));
  std::string text(kDateSize, '\0');
  char* to = put(text.data(), kDays[std::chrono::weekday(day).iso_encoding() - 1]);
  to = put(put(put(to, ", "), static_cast<unsigned>(date.day()), 2), " ");
  to = put(put(to, kMonths[static_cast<unsigned>(date.month()) - 1]), " ");
  to = put(put(to, static_cast<unsigned>(static_cast<int>(date.year())), 4), " ");
  to = put(put(to, static_cast<unsigned>(clock.hours().count()), 2), ":");
  to = put(put(to, static_cast<unsigned>(clock.minutes().count()), 2), ":");
  put(put(to, static_cast<unsigned>(clock.seconds().count()), 2), " GMT");
  return text;
}

}  // namespace carpool::proxy::http
