#include "proxy/net/tls/session_store.h"

#include <ctime>
#include <utility>

namespace carpool::proxy::tls {
namespace {

bool usable(const SSL_SESSION* session) {
  return SSL_SESSION_is_resumable(session) == 1 &&
         SSL_SESSION_get_time(session) + SSL_SESSION_get_timeout(session) > std::time(nullptr);
}

bool single_use(const SSL_SESSION* session) {
  return SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION;
}

}  // namespace

void SessionStore::put(const std::string& peer, SessionPtr session) {
  const unsigned char* ticket = nullptr;
  std::size_t length = 0;
  SSL_SESSION_get0_ticket(session.get(), &ticket, &length);
  if (length > kMaxTicket) return;
  const Held lock(mutex_);
  Stack& stack = at(peer);
  if (!single_use(session.get())) stack.sessions.clear();  // the newest replaces the others, because it is reusable
  stack.sessions.push_back(std::move(session));
  if (stack.sessions.size() > kMaxPerPeer) stack.sessions.pop_front();
}

SessionPtr SessionStore::take(const std::string& peer) {
  const Held lock(mutex_);
  const auto found = stacks_.find(peer);
  if (found == stacks_.end()) return nullptr;
  auto& sessions = found->second.sessions;
  while (!sessions.empty() && !usable(sessions.back().get())) sessions.pop_back();
  SessionPtr session;
  if (!sessions.empty() && single_use(sessions.back().get())) {
    session = std::move(sessions.back());
    sessions.pop_back();
  } else if (!sessions.empty()) {
    session.reset(SSL_SESSION_dup(sessions.back().get()));
  }
  if (sessions.empty()) forget(found);
  return session;
}

void SessionStore::forget(const std::string& peer) {
  const Held lock(mutex_);
  if (const auto found = stacks_.find(peer); found != stacks_.end()) forget(found);
}

std::size_t SessionStore::size() const {
  const Held lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [peer, stack] : stacks_) sum += stack.sessions.size();
  return sum;
}

SessionStore::Stack& SessionStore::at(const std::string& peer) {
  auto found = stacks_.find(peer);
  if (found != stacks_.end()) {
    by_age_.splice(by_age_.end(), by_age_, found->second.age);
    return found->second;
  }
  if (stacks_.size() >= kMaxPeers) forget(stacks_.find(by_age_.front()));
  by_age_.push_back(peer);
  Stack& stack = stacks_[peer];
  stack.age = std::prev(by_age_.end());
  return stack;
}

void SessionStore::forget(Stacks::iterator stack) {
  by_age_.erase(stack->second.age);
  stacks_.erase(stack);
}

}  // namespace carpool::proxy::tls
