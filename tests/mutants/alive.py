"""The mutants that no test is known to detect yet, in the order of their tables: work that is left."""

NAMES = {
    # Only a connection that is released between the match of the idle ones and the eviction suits a waiter.
    "a connection that a waiter accepts is evicted",
    # Only if the same search then loses an expired entry to another thread and takes a third: else its borrower waits, and all are served.
    "a search that lists an entry again and takes none serves no waiter",
    # A session in use expires, ends and has a successor in its place, between a search and its mutex.
    "a search drains the next session of an expired entry",
}
