"""The mutants that no test is known to detect yet, in the order of their tables: work that is left."""

NAMES = {
    "a search does not report that it listed an entry again",
    "a search that lists an entry again and takes none serves no waiter",
    "a search that lists an entry again and takes one serves no waiter",
    "a place counts as free before it is vacant",
    "an old message drains the next session of the entry",
    "sessions drain for HTTP/1.1 beside one that drains",
    "a place is disposed of before it is vacant",
    "an inspection that finds nothing reopens a closed entry",
    "a port does not distinguish origins",
    "a scheme does not distinguish origins",
    "the egress policy is not asked",
    "the received part of a broken response is dropped",
    "the connection keeps its last user",
    "GOAWAY does not retire a session",
    "an unanswered PING does not close the session",
    "a body ends twice",
    "a request that was not sent counts as sent",
    "a refused stream counts as processed",
    "a far stream's trailers are dropped",
    "a client stays open after an exchange that asked for close",
}
