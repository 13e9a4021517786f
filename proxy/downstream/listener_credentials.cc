#include "proxy/downstream/listener_credentials.h"

#include <utility>

#include "proxy/config/credential.h"
#include "proxy/config/read.h"

namespace carpool::proxy {

Result<ListenerCredentials> read_credentials(const config::Listen& listen, const ListenerCredentials& before) {
  if (listen.credentials_file.empty()) return ListenerCredentials();
  config::CredentialList list = config::read_credentials(listen.credentials_file);
  if (!list.errors.empty()) {
    return Fault{FaultKind::malformed_request, Side::self,
                 "the listener " + listen.address + ": " + list.errors.front()};
  }
  auto made = std::make_shared<const ClientCredentials>(std::move(list.credentials));
  return before != nullptr && *made == *before ? before : ListenerCredentials(std::move(made));
}

void check_credentials(config::Reading& reading) {
  for (const config::NamedFile& named : reading.credentials) {
    for (std::string& text : config::read_credentials(named.path).errors) {
      reading.errors.push_back(named.place);
      reading.errors.back().text = std::move(text);
    }
  }
  if (config::bound(reading.errors)) reading.mark_exceeded(config::ReadingLimit::errors);
}

}  // namespace carpool::proxy
