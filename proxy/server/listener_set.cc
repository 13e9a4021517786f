#include "proxy/server/listener_set.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace carpool::proxy {

namespace {
auto find(std::vector<std::unique_ptr<Listener>>& all, const std::string& name) {
  return std::find_if(all.begin(), all.end(), [&](const auto& l) { return l->settings().name() == name; });
}

void note_not_open(const std::string& name, const std::string& why, AppliedListeners& applied) {
  applied.not_open.push_back(name);
  applied.not_applied.push_back("listen " + name + " does not accept: " + why);
}

// `change`: a NewListener or a ChangedListener.
template <class Change>
void apply_settings(Listener& listener, Change& change, AppliedListeners& applied) {
  if (!listener.change(change.settings)) {
    applied.not_applied.push_back("listen " + change.settings.name() +
                                  " had too many different settings since the start");
  }
  listener.set_identity(std::move(change.identity));
  listener.swap_credentials(change.credentials);
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

AppliedListeners ListenerSet::apply(ListenerChanges& changes) {
  AppliedListeners applied;
  for (const std::string& name : changes.closing) {
    const auto found = find(open_, name);
    if (found == open_.end()) continue;
    (*found)->accept_waiting_and_close();
    applied.closed.push_back(found->get());
    closed_.push_back(std::move(*found));
    open_.erase(found);
  }
  for (ChangedListener& change : changes.changing) {
    const auto found = find(open_, change.settings.name());
    if (found == open_.end()) {
      note_not_open(change.settings.name(), "it could not be opened before", applied);
    } else {
      apply_settings(**found, change, applied);
    }
  }
  for (NewListener& change : changes.opening) open(change, applied);
  return applied;
}

void ListenerSet::open(NewListener& change, AppliedListeners& applied) {
  std::unique_ptr<Listener> listener = reopened(change.settings);
  apply_settings(*listener, change, applied);
  listener->adopt_socket(std::move(change.bound));
  const Status started = listener->start();
  if (started) return open_.push_back(std::move(listener));
  note_not_open(change.settings.name(), started.fault().detail, applied);
  listener->accept_waiting_and_close();
  closed_.push_back(std::move(listener));  // it may have clients from before
}

std::unique_ptr<Listener> ListenerSet::reopened(const config::Listen& settings) {
  const auto known = find(closed_, settings.name());
  if (known == closed_.end()) return std::make_unique<Listener>(settings, parts_);
  std::unique_ptr<Listener> listener = std::move(*known);
  closed_.erase(known);
  return listener;
}

void ListenerSet::close_all() {
  for (auto& listener : open_) listener->accept_waiting_and_close();
}

void ListenerSet::end_all() {
  for (auto& listener : open_) listener->close();
}

void ListenerSet::leave_all() {
  for (auto& listener : open_) listener->leave_to_successor();
}

void ListenerSet::on_left(net::SocketUser who) {
  for (auto& listener : open_) listener->on_left(who);
}

void ListenerSet::clear() {
  open_.clear();
  closed_.clear();
}

}  // namespace carpool::proxy
