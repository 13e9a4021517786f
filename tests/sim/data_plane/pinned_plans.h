// The plans that found defects of the proxy, shrunk, as scripts. Each run from the first seed begins with them.
#pragma once

namespace carpool::test {

struct PinnedPlan {
  const char* defect;
  const char* script;
};

inline constexpr PinnedPlan kPinnedPlans[] = {
    {"a connection that a request gave back unused, because a reload had replaced its pool, counted as one that served",
     R"(seed 427957
plan 3 1 0 1 65536 0 38 0 0 2014 0 0 0 0 0 1 95 0 0 0 0 1 0 0
client 2
request 0
answer 0
client 0
request 0
answer 0 0 0 1
client 1
request 0
answer 0
client 0
client 0
request 4 0 0 1 1
client 0
request 0
)"},
    {"a client that was asked twice in one turn whether it is idle lost the request that had just been read",
     R"(seed 70015
plan 1 1 1 2 1723 0 12 2301 0 0 0 1 0 0 0 0 0 0 0 0 0 1
client 0
request 0
client 0
client 0
request 0
)"},
    {"a request was sent over HTTP/2 again to an origin that requires HTTP/1.1 for it, after a reload had removed h1",
     R"(seed 911017231
plan 1 2 1 2 899 0 92 4834 0 24108 0 0 0 0 0 1 68
client 0
request 0 1
answer 0 0 0 1
client 0 3 0 1
request 0
request 0 1
request 0
request 0
)"},
};

}  // namespace carpool::test
