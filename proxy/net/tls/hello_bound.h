// HelloBound: limits the length of a client's ClientHello. OpenSSL reserves memory for the whole message, up to 128
// KiB, as soon as its first bytes announce the length, so that a few bytes would occupy this memory until the handshake
// ends.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace carpool::proxy::tls {

class HelloBound {
 public:
  static constexpr std::size_t kMaxHello = 17'408;  // bytes of the message; more than a record holds

  // Must be called with the bytes that the client sends, in their order, until its handshake is complete. `tls12`: the
  // handshake has selected TLS 1.2. Returns false if a ClientHello announces more than kMaxHello.
  bool accept(std::span<const char> bytes, bool tls12);

 private:
  void begin_record(bool tls12);
  bool read_messages(std::span<const char> bytes);

  std::array<unsigned char, 5> record_{};             // header of the record
  std::array<unsigned char, 4> message_{};            // header of the message
  std::size_t record_known_ = 0, message_known_ = 0;  // bytes of the headers that have arrived
  std::size_t record_left_ = 0, message_left_ = 0;    // bytes that follow the headers
  bool skips_ = false;                                // the record contains no messages
  bool over_ = false;                                 // no ClientHello follows
};

}  // namespace carpool::proxy::tls
