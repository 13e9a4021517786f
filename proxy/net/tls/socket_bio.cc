#include "proxy/net/tls/socket_bio.h"

#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/repeat_interrupted.h"
#include "proxy/net/tls/tls_transport.h"

namespace carpool::proxy::tls {

BIO* SocketBio::make(TlsTransport& stream) {
  BIO* bio = BIO_new(method());
  if (bio != nullptr) BIO_set_data(bio, &stream);
  return bio;
}

TlsTransport& SocketBio::stream_of(BIO* bio) {
  return *static_cast<TlsTransport*>(BIO_get_data(bio));
}

int SocketBio::read(BIO* bio, char* into, std::size_t size, std::size_t* bytes_read) {
  TlsTransport& stream = stream_of(bio);
  BIO_clear_retry_flags(bio);
  *bytes_read = 0;
  if (stream.flooded_) return 0;
  if (!stream.readable_ && !std::exchange(stream.fresh_in_, false)) {
    BIO_set_retry_read(bio);
    return 0;
  }
  stream.fresh_in_ = false;
  const ssize_t count = repeat_interrupted([&] { return ::recv(stream.fd(), into, size, 0); });
  if (count > 0) {
    if (!stream.admits({into, static_cast<std::size_t>(count)})) return 0;
    *bytes_read = static_cast<std::size_t>(count);
    stream.readable_ = *bytes_read == size || stream.reads_to_end_;
    return 1;
  }
  stream.fin_ = count == 0;
  stream.wire_error_ = count < 0 ? errno : 0;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    stream.readable_ = false;
    BIO_set_retry_read(bio);
  }
  return 0;
}

// A lost connection is no error of TLS: OpenSSL would not read the rest of the input after one, such as a response that
// the peer sent before it stopped reading the request. So the output is discarded, and TlsTransport::write() fails.
int SocketBio::write(BIO* bio, const char* from, std::size_t size, std::size_t* sent) {
  TlsTransport& stream = stream_of(bio);
  BIO_clear_retry_flags(bio);
  *sent = 0;
  if (stream.output_error_ != 0) {
    *sent = size;
    return 1;
  }
  if (!stream.writable_ && !std::exchange(stream.fresh_out_, false)) {
    BIO_set_retry_write(bio);
    return 0;
  }
  stream.fresh_out_ = false;
  const ssize_t count = repeat_interrupted([&] { return ::send(stream.fd(), from, size, MSG_NOSIGNAL); });
  if (count >= 0) {
    *sent = static_cast<std::size_t>(count);
    stream.writable_ = *sent == size;
    return 1;
  }
  stream.wire_error_ = errno;
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    stream.writable_ = false;
    BIO_set_retry_write(bio);
  } else if (stream.established_) {
    stream.output_error_ = errno;
    *sent = size;
    return 1;
  }
  return 0;
}

long SocketBio::control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return stream_of(bio).fin_ ? 1 : 0;
  return 0;
}

int SocketBio::create(BIO* bio) {
  BIO_set_init(bio, 1);
  return 1;
}

const BIO_METHOD* SocketBio::method() {
  static BIO_METHOD* const made = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "carpool stream");
    if (m == nullptr) throw std::bad_alloc();  // the next call tries again
    BIO_meth_set_read_ex(m, read);
    BIO_meth_set_write_ex(m, write);
    BIO_meth_set_ctrl(m, control);
    BIO_meth_set_create(m, create);
    return m;
  }();
  return made;
}

}  // namespace carpool::proxy::tls
