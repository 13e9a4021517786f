// http_h2_pair.h: a client and a server of HTTP/2 in memory that exchange their output.
#pragma once

#include <gtest/gtest.h>

#include <list>

#include "tests/unit/http_h2_support.h"

namespace carpool::proxy::http {

inline H2Fields fields_of(const List_& list) {
  H2Fields fields;
  for (const auto& [name, value] : list) fields.add(name, value);
  return fields;
}

// A client and a server that know each other's settings.
struct Pair {
  explicit Pair(const H2Options& options = {}) : client(H2Role::client, options), server(H2Role::server, options) {
    talk(client, server);
  }
  StreamRecord& ask(bool end = true, const List_& list = get(), bool head = false) {
    StreamRecord& record = asked.emplace_back();
    Result<H2Stream*> stream = client.session.request(fields_of(list), record, end, head);
    EXPECT_TRUE(stream);
    record.stream = *stream;
    return record;
  }
  void exchange_more() { talk(client, server); }
  End client, server;
  std::list<StreamRecord> asked;
};

}  // namespace carpool::proxy::http
