// Request and response heads as plain data. The bytes of names and values are in one arena per head, in wire format, so
// that a reused head allocates nothing in steady state and a run of fields is copied at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/field_name.h"

namespace carpool::proxy::http {

enum class Version : std::uint8_t { http10, http11, http2 };

// Frees memory that `text` does not use, beyond a modest size.
void shrink_text(std::string& text);

// Fields in the order received. Names keep the sender's spelling; comparison ignores case.
class Fields {
  struct Span;

 public:
  struct Field {
    std::string_view name, value;
    FieldName id = FieldName::other;
  };
  Fields() = default;
  Fields(const Fields&) = default;
  Fields(Fields&&) = default;
  Fields& operator=(const Fields&) = default;
  // Leaves `other` empty. Each keeps its memory or gets the other's.
  Fields& operator=(Fields&& other) noexcept;
  void clear();
  // As clear(), but memory keeps no value: overwrites the bytes, and reserves memory that does not grow until fields of
  // `bytes` bytes are added.
  void wipe(std::size_t bytes);
  static std::size_t bytes_of(std::string_view name, std::string_view value) {
    return name.size() + kNameEnd + value.size() + kValueEnd;
  }
  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::string_view value, bool sensitive) {
    add(name, value);
    spans_.back().sensitive = sensitive;
  }
  // Like add(), of a name that was identified, and a value without white space around it.
  void add(std::string_view name, std::string_view value, FieldName id);
  std::size_t size() const { return spans_.size(); }
  bool empty() const { return spans_.empty(); }
  Field operator[](std::size_t i) const {
    const Span& span = spans_[i];
    return {part(span.name, span.value - kNameEnd), part(span.value, span.end - kValueEnd), span.id};
  }
  FieldName id(std::size_t i) const { return spans_[i].id; }
  // Returns true if the sender forbade compression of this field (RFC 7541 §7.1.3); a recipient that forwards it must
  // forbid it too.
  bool sensitive(std::size_t i) const { return spans_[i].sensitive; }
  void mark_sensitive() { spans_.back().sensitive = true; }  // the last field
  // Returns the first value of that name; empty if there is none, see has().
  std::string_view get(std::string_view name) const;
  std::string_view get(FieldName id) const;
  bool has(std::string_view name) const;
  bool has(FieldName id) const { return count(id) != 0; }
  std::size_t count(FieldName id) const;
  std::size_t count(std::string_view name) const;
  // Returns false if there is certainly none. Most heads have few of the names, so most lookups end here.
  bool may_have(FieldName id) const { return (seen_ & bit(id)) != 0; }
  std::size_t bytes() const { return arena_.size(); }
  // Returns "Name: value\r\n" of the fields in [first, last).
  std::string_view lines(std::size_t first, std::size_t last) const;
  // Frees memory beyond a modest size: an idle head must not keep a 64 KiB arena.
  void shrink();

  // Builds one field from the pieces that a parser delivers; it is invisible until commit(), which strips white space
  // around the value.
  void append_name(std::string_view piece) { arena_.append(piece); }
  bool end_name();  // returns false if it is not a token (RFC 9110 §5.1)
  void append_value(std::string_view piece) { arena_.append(piece); }
  void commit();
  void abandon();  // drops the unfinished field

  // Adds fields in wire format that are one text: announce() for each, then their text as a whole. Until the text is
  // appended, the announced fields may not be read.
  void announce(std::string_view name, std::size_t value_size, FieldName id);
  void append_lines(std::string_view text) { arena_.append(text); }
  void pop_back();  // drops the last committed field

  // Layout: the positions of the fields of a text in wire format, and their identified names, without a byte of the
  // text.
  class Layout {
   public:
    std::size_t fields() const { return spans_.size(); }

   private:
    friend class Fields;
    std::vector<Span> spans_;
    std::uint32_t seen_ = 0;
  };
  Layout layout() const;
  // Adds the fields of `text`, which has this layout. Must be called on empty fields.
  void adopt(const Layout& layout, std::string_view text);

 private:
  static constexpr std::uint32_t kNameEnd = 2;   // ": "
  static constexpr std::uint32_t kValueEnd = 2;  // CRLF
  std::string_view part(std::uint32_t from, std::uint32_t to) const { return {arena_.data() + from, to - from}; }
  struct Span {
    std::uint32_t name, value, end;  // offsets into arena_; ": " precedes value, CRLF precedes end
    FieldName id;
    bool sensitive = false;
  };
  std::size_t open_at() const { return spans_.empty() ? 0 : spans_.back().end; }
  static_assert(kFieldNames <= 32);
  static constexpr std::uint32_t bit(FieldName id) { return std::uint32_t{1} << static_cast<unsigned>(id); }
  std::string arena_;
  std::vector<Span> spans_;
  std::uint32_t seen_ = 0;  // one bit per name committed since clear()
  std::uint32_t open_value_ = 0;
};

// Framing: how the end of a body is found (RFC 9112 §6.3).
enum class Framing : std::uint8_t { none, length, chunked, until_close };

// `lists_fields`: Connection may list other fields, or TE; false: resolve_framing() has found none. A head whose values
// were moved must be cleared before its next use.
struct RequestHead {
  std::string method;
  std::string target;  // as received; :path in HTTP/2, empty for a plain CONNECT
  Fields fields;
  Version version = Version::http11;
  Framing framing = Framing::none;
  std::uint64_t length = 0;  // with Framing::length
  bool keep_alive = true;    // the sender's choice, RFC 9112 §9.3
  bool lists_fields = true;
  bool expect_continue = false;
  bool upgrade = false;  // Connection: upgrade with an Upgrade field that offers more than h2c
  // HTTP/2: END_STREAM was not in the head's frame, so trailers may follow even without a body.
  bool ends_later = false;
  bool sensitive_target = false;  // HTTP/2: the sender forbade compression of :path
  // HTTP/2 only, else empty; `protocol` is that of an extended CONNECT (RFC 8441).
  std::string scheme, authority, protocol;
  // Usable once the method was read. Compares views, because those compare their sizes first.
  bool has_method(std::string_view name) const { return std::string_view(method) == name; }
  // Returns true if neither a body nor trailers for HTTP/2 follow.
  bool is_whole() const {
    return framing == Framing::none || (framing == Framing::length && length == 0 && !ends_later);
  }
  void clear();
  void shrink();
};

struct ResponseHead {
  std::uint16_t status = 0;
  std::string reason;
  Version version = Version::http11;
  Fields fields;
  Framing framing = Framing::none;
  std::uint64_t length = 0;
  bool keep_alive = true;
  // A message without content whose fields contradict each other about its length: keep_alive is false.
  bool unclear_length = false;
  bool lists_fields = true;
  // HTTP/2: END_STREAM was not in the head's frame, so trailers may follow even without a body.
  bool ends_later = false;
  // Returns true if the sender said that it processes no further request on the connection (RFC 9112 §9.6).
  bool announces_close() const { return !keep_alive && !unclear_length; }
  void clear();
  void shrink();
};

// BodySink: receives body bytes and trailers while feed() runs; the views are valid during the call only. Trailer
// fields that Connection lists are not delivered.
class BodySink {
 public:
  virtual void on_body(std::string_view bytes) = 0;
  // `sensitive`: the sender forbade compression of it, see Fields::sensitive().
  virtual void on_trailer(std::string_view name, std::string_view value, bool sensitive) = 0;

 protected:
  ~BodySink() = default;
};

}  // namespace carpool::proxy::http
