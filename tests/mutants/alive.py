"""The mutants that no test is known to detect yet, in the order of their tables: work that is left."""

NAMES = {
    "a search does not report that it listed an entry again",
    "a search that lists an entry again and takes none serves no waiter",
    "a search that lists an entry again and takes one serves no waiter",
    "a place counts as free before it is vacant",
    "an old message drains the next session of the entry",
    "a place is disposed of before it is vacant",
}
