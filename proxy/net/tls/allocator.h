// OpenSSL's memory: it shares the program's reserve. Without memory OpenSSL reports wrong causes, for example a
// certificate that it could not verify.
#pragma once

namespace carpool::proxy::tls {

// Must be called before OpenSSL is used.
void use_c_allocator_in_openssl();

}  // namespace carpool::proxy::tls
