// A single pass over the part of TOML's grammar that separates structure from text: strings, comments, keys, brackets.
// On every valid prefix of a text it agrees with the parser. The parser stops at the first syntax error, so the result
// for the rest does not matter. Accepts any bytes and stores at most `most` levels.
#include "proxy/config/nesting.h"

#include <vector>

namespace carpool::proxy::config {
namespace {

class Scan {
 public:
  Scan(std::string_view text, unsigned most) : text_(text), most_(most) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::optional<Place> run() {
    while (!deep_ && at_ < text_.size()) {
      if (is(' ') || is('\t') || is('\r') || is('\n')) {
        ++at_;
      } else if (is('#')) {
        comment();
      } else if (is('[')) {
        header();
      } else {
        key(header_, '=');
        value(header_ + parts_);
      }
    }
    if (!deep_) return std::nullopt;
    return place();
  }

 private:
  // An open array, or an open inline table with the number of parts of its current key.
  struct Level {
    bool table = false;
    bool in_key = false;
    unsigned parts = 1;
  };

  bool is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool is_quote() const { return is('"') || is('\''); }
  void deepens(unsigned depth) { deep_ = deep_ || depth > most_; }

  void comment() {
    while (at_ < text_.size() && !is('\n')) ++at_;
  }

  void header() {
    ++at_;
    const unsigned repeated = is('[') ? 1 : 0;
    at_ += repeated;
    key(repeated, ']');
    header_ = parts_ + repeated;
    while (is(']')) ++at_;
    while (!deep_ && at_ < text_.size() && !is('\n') && !is('#')) ++at_;
  }

  // Counts the parts of a key at `depth`; stops before `end` or at the end of the line.
  void key(unsigned depth, char end) {
    parts_ = 1;
    for (deepens(depth + 1); !deep_ && at_ < text_.size() && !is(end) && !is('\n'); deepens(depth + parts_)) {
      if (is_quote()) {
        string();
      } else {
        parts_ += is('.') ? 1 : 0;
        ++at_;
      }
    }
  }

  // Scans from the `=` of a key to the end of its line; a bracketed value may span several lines.
  void value(unsigned depth) {
    levels_.clear();
    depth_ = depth;
    while (!deep_ && at_ < text_.size() && !(is('\n') && levels_.empty())) {
      if (is('#')) {
        comment();
      } else if (is_quote()) {
        string();
      } else {
        bracket(text_[at_]);
        ++at_;
      }
    }
  }

  void bracket(char c) {
    if (c == '[' || c == '{') {
      levels_.push_back({c == '{', c == '{', 1});
      deepens(++depth_);
      return;
    }
    if (levels_.empty()) return;
    Level& top = levels_.back();
    if (c == ']' || c == '}') {
      depth_ -= top.parts;
      levels_.pop_back();
    } else if (c == ',' && top.table) {
      depth_ -= top.parts - 1;
      top.parts = 1;
      top.in_key = true;
    } else if (c == '=') {
      top.in_key = false;
    } else if (c == '.' && top.in_key) {
      ++top.parts;
      deepens(++depth_);
    }
  }

  void string() {
    const char quote = text_[at_];
    const std::string_view three = quote == '"' ? R"(""")" : "'''";
    if (text_.substr(at_).starts_with(three)) return long_string(quote, three);
    for (++at_; at_ < text_.size() && !is('\n'); ++at_) {
      if (is(quote)) {
        ++at_;
        return;
      }
      if (quote == '"' && is('\\') && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
    }
  }

  // Up to two quotes may precede the three that end the string.
  void long_string(char quote, std::string_view three) {
    for (at_ += 3; at_ < text_.size(); ++at_) {
      if (text_.substr(at_).starts_with(three)) {
        at_ += 3;
        for (int i = 0; i < 2 && is(quote); ++i) ++at_;
        return;
      }
      if (quote == '"' && is('\\')) ++at_;
    }
  }

  Place place() const {
    Place place;
    for (const char c : text_.substr(0, at_)) {
      const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
      place.column = c == '\n' ? 1 : place.column + (continues ? 0 : 1);
      place.line += c == '\n' ? 1 : 0;
    }
    return place;
  }

  const std::string_view text_;
  const unsigned most_;
  std::size_t at_ = 0;
  unsigned header_ = 0;  // levels of the last header
  unsigned parts_ = 0;   // parts of the last key
  unsigned depth_ = 0;   // current depth inside a value
  std::vector<Level> levels_;
  bool deep_ = false;
};

}  // namespace

std::optional<Place> deeper_than(std::string_view toml, unsigned most) {
  return Scan(toml, most).run();
}

std::string too_deep_text() {
  return "nests deeper than " + std::to_string(kMaxLevels) + " levels, expected at most that";
}

}  // namespace carpool::proxy::config
