// row<&Struct::member>("key", "description"): the member determines a setting's type, its default and, if it is an
// enumeration, its words. Included only by the settings_*.cc files and schema.cc.
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "proxy/config/schema.h"

namespace carpool::proxy::config {

using Word = std::string_view;

// The words of an enumeration, in the order of its values.
template <class E>
inline constexpr std::array<Word, 0> kWords{};
template <>
inline constexpr std::array<Word, 4> kWords<Strategy>{"first", "random", "thread_id", "round_robin"};
template <>
inline constexpr std::array<Word, 2> kWords<Evict>{"last_use", "least_used"};
template <>
inline constexpr std::array<Word, 2> kWords<Balance>{"least_loaded", "none"};
template <>
inline constexpr std::array<Word, 3> kWords<Reuse>{"never", "always", "safe"};
template <>
inline constexpr std::array<Word, 3> kWords<ClientField>{"off", "x_forwarded_for", "forwarded"};
template <>
inline constexpr std::array<Word, 2> kWords<Profile>{"standard", "streaming"};
template <>
inline constexpr std::array<Word, 3> kWords<LoopbackClient>{"process", "user", "connection"};
template <>
inline constexpr std::array<Word, 2> kWords<LeakAction>{"report", "discard"};
template <>
inline constexpr std::array<Word, 2> kWords<EgressAction>{"allow", "deny"};
template <>
inline constexpr std::array<Word, 4> kWords<Execution>{"adaptive", "execute_produce", "produce_execute", "produce"};
template <>
inline constexpr std::array<Word, 6> kWords<LogLevel>{"trace", "debug", "info", "warn", "error", "off"};
template <>
inline constexpr std::array<Word, 2> kWords<LogFormat>{"json", "text"};
template <>
inline constexpr std::array<Word, 4> kWords<AccessFormat>{"same", "json", "text", "combined"};
template <>
inline constexpr std::array<Word, 2> kWords<TlsVersion>{"1.2", "1.3"};
template <>
inline constexpr std::array<Word, 2> kWords<ClientAuthentication>{"basic", "post"};
template <>
inline constexpr std::array<Word, 2> kWords<OnDistrust>{"tunnel", "fail"};

template <class T>
Value to_value(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(kWords<T>[static_cast<std::size_t>(member)]);
  } else if constexpr (std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int32_t>) {
    return static_cast<std::int64_t>(member);
  } else {
    return member;
  }
}

template <class T>
void from_value(T& member, Value value) {
  if constexpr (std::is_enum_v<T>) {
    const auto& word = std::get<std::string>(value);
    for (std::size_t i = 0; i < kWords<T>.size(); ++i) {
      if (kWords<T>[i] == word) member = static_cast<T>(i);
    }
  } else if constexpr (std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::int32_t>) {
    member = static_cast<T>(std::get<std::int64_t>(value));
  } else {
    member = std::get<T>(std::move(value));
  }
}

template <class S, class T>
S owner_of(T S::*);
template <class S, class T>
T type_of(T S::*);

// One row; section, type and default follow from the member.
template <auto Member>
Setting row(std::string_view key, std::string_view doc) {
  using Owner = decltype(owner_of(Member));
  using Type = decltype(type_of(Member));
  Setting made{key, doc, [](const void* section) { return to_value(static_cast<const Owner*>(section)->*Member); },
               [](void* section, Value value) { from_value(static_cast<Owner*>(section)->*Member, std::move(value)); }};
  if constexpr (std::is_enum_v<Type>) made.words = kWords<Type>;
  if constexpr (std::is_same_v<Type, std::uint32_t>) made.most = std::numeric_limits<std::uint32_t>::max();
  if constexpr (std::is_same_v<Type, std::int32_t>) made.most = std::numeric_limits<std::int32_t>::max();
  return made;
}

// Made at the first call: a static object would allocate before main(), where a failed allocation has no message.
template <class T>
const T& defaults() {
  static const T made{};
  return made;
}

inline constexpr std::int64_t kMaxConnections = 1'000'000;

// The sections, in the order of the documents.
Section top_section();
Section listen_section();
Section admin_section();
Section metrics_section();
Section otlp_section();
Section pool_section();
Section warm_up_section();
Section health_check_section();
Section addresses_section();
Section total_section();
Section request_section();
Section headers_section();
Section dns_section();
Section upstream_section();
Section tls_section();
Section egress_section();
Section origin_section();
Section oauth2_section();
Section intercept_section();
Section handover_section();
Section overload_section();
Section threads_section();
Section log_section();

}  // namespace carpool::proxy::config
