#include "proxy/net/tls/hello_bound.h"

#include <algorithm>

namespace carpool::proxy::tls {
namespace {

// RFC 8446 §5.1 and §4.
constexpr unsigned char kChangeRecord = 20, kAlertRecord = 21, kMessageRecord = 22, kDataRecord = 23, kHelloMessage = 1;

// Moves bytes from the front of `bytes` to the header. Returns true once the header is complete.
template <std::size_t Size>
bool take_header(std::array<unsigned char, Size>& header, std::size_t& known, std::span<const char>& bytes) {
  const std::size_t taken = std::min(bytes.size(), Size - known);
  std::copy_n(bytes.begin(), taken, header.begin() + static_cast<std::ptrdiff_t>(known));
  bytes = bytes.subspan(taken);
  known = (known + taken) % Size;
  return known == 0;
}

template <std::size_t Size>
std::size_t number_from(const std::array<unsigned char, Size>& header, std::size_t at) {
  std::size_t number = 0;
  for (; at < Size; ++at) number = number << 8U | header[at];
  return number;
}

}  // namespace

bool HelloBound::accept(std::span<const char> bytes, bool tls12) {
  while (!over_ && !bytes.empty()) {
    if (record_left_ == 0) {
      if (take_header(record_, record_known_, bytes)) begin_record(tls12);
      continue;
    }
    const std::span<const char> part = bytes.first(std::min(bytes.size(), record_left_));
    bytes = bytes.subspan(part.size());
    record_left_ -= part.size();
    if (!skips_ && !read_messages(part)) return false;
  }
  return true;
}

// In TLS 1.3 a ChangeCipherSpec means nothing, and early data is skipped: another ClientHello may follow them after
// HelloRetryRequest. In TLS 1.2 the records that follow them are encrypted. A warning may precede a ClientHello.
void HelloBound::begin_record(bool tls12) {
  record_left_ = number_from(record_, 3);
  const bool means_nothing = record_[0] == kChangeRecord || record_[0] == kDataRecord;
  skips_ = record_[0] == kAlertRecord || (means_nothing && !tls12);
  over_ = !skips_ && record_[0] != kMessageRecord;
}

bool HelloBound::read_messages(std::span<const char> bytes) {
  while (!bytes.empty()) {
    if (message_left_ != 0) {
      const std::size_t taken = std::min(bytes.size(), message_left_);
      bytes = bytes.subspan(taken);
      message_left_ -= taken;
      continue;
    }
    if (!take_header(message_, message_known_, bytes)) return true;
    over_ = message_[0] != kHelloMessage;
    if (over_) return true;
    message_left_ = number_from(message_, 1);
    if (message_left_ > kMaxHello) return false;
  }
  return true;
}

}  // namespace carpool::proxy::tls
