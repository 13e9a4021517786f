#include "proxy/server/listener_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
auto find(std::vector<std::unique_ptr<Listener>>& all, const std::string& address) {
  return std::find_if(all.begin(), all.end(), [&](const auto& l) { return l->settings().address == address; });
}
}  // namespace

Status ListenerSet::open(const config::Listen& settings, std::optional<net::Bound> inherited) {
  Result<ListenerIdentity> identity = read_identity(settings, nullptr);
  if (!identity) return identity.take_fault();
  Result<ListenerCredentials> credentials = read_credentials(settings, nullptr);
  if (!credentials) return credentials.take_fault();
  auto listener = std::make_unique<Listener>(settings, parts_);
  listener->set_identity(std::move(*identity));
  listener->swap_credentials(*credentials);
  if (inherited) {
    if (Status set = net::set_access(inherited->address, Listener::access_of(settings)); !set) return set;
    listener->adopt_socket(std::move(*inherited));
  } else if (Status opened = listener->open(); !opened) {
    return opened;
  }
  if (Status started = listener->start(); !started) return started;
  open_.push_back(std::move(listener));
  return Done{};
}

std::vector<const Listener*> ListenerSet::apply(ListenerChanges& changes) {
  std::vector<const Listener*> closed;
  for (const std::string& address : changes.closing) {
    const auto found = find(open_, address);
    (*found)->close();
    closed.push_back(found->get());
    closed_.push_back(std::move(*found));
    open_.erase(found);
  }
  for (ChangedListener& change : changes.changing) {
    Listener& listener = **find(open_, change.settings.address);
    listener.change(change.settings);
    listener.set_identity(std::move(change.identity));
    listener.swap_credentials(change.credentials);
  }
  for (NewListener& change : changes.opening) {
    std::unique_ptr<Listener> listener = reopened(change.settings);
    listener->set_identity(std::move(change.identity));
    listener->swap_credentials(change.credentials);
    listener->adopt_socket(std::move(change.bound));
    if (Status started = listener->start(); !started) log::error("reload", started.fault().detail);
    open_.push_back(std::move(listener));
  }
  return closed;
}

std::unique_ptr<Listener> ListenerSet::reopened(const config::Listen& settings) {
  const auto known = find(closed_, settings.address);
  if (known == closed_.end()) return std::make_unique<Listener>(settings, parts_);
  std::unique_ptr<Listener> listener = std::move(*known);
  closed_.erase(known);
  listener->change(settings);
  return listener;
}

void ListenerSet::close_all() {
  for (auto& listener : open_) listener->close();
}

void ListenerSet::leave_all() {
  for (auto& listener : open_) listener->stop_accepting();
}

void ListenerSet::on_left(net::SocketUser who) {
  for (auto& listener : open_) listener->on_left(who);
}

void ListenerSet::clear() {
  open_.clear();
  closed_.clear();
}

}  // namespace carpool::proxy
