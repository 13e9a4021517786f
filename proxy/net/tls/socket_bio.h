// SocketBio: the BIO between SSL and the socket. Calls recv and send directly on the descriptor and maintains the
// sticky readiness bits like PlainTransport. Included by this directory's .cc files only.
#pragma once

#include "proxy/net/tls/openssl.h"

namespace carpool::proxy::tls {

class TlsTransport;

struct SocketBio {
  static BIO* make(TlsTransport& stream);  // owned by the SSL that it is given to

 private:
  static int read(BIO* bio, char* into, std::size_t size, std::size_t* bytes_read);
  static int write(BIO* bio, const char* from, std::size_t size, std::size_t* sent);
  static long control(BIO* bio, int command, long number, void* pointer);
  static int create(BIO* bio);
  static const BIO_METHOD* method();
  static TlsTransport& stream_of(BIO* bio);
};

}  // namespace carpool::proxy::tls
