"""Includes follow the components, each third-party library has one wrapper, atomics are in few named files.

The components and their directions are read from CMakeLists.txt. The directions that the design depends on are repeated
here and compared, so that no change loosens them by accident.
"""
import fnmatch
import re

import graph
from tree import Offence

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMPONENT = re.compile(r"carpool_component\(\s*(.*?)\)", re.S)

# (component, component it must never reach)
NEVER = [("base", "metrics"), ("base", "exec"), ("base", "pool"), ("metrics", "exec"), ("metrics", "pool"),
         ("exec", "pool"), ("pool", "exec"), ("http", "net"), ("http", "exec"), ("config", "exec"), ("config", "net")]
NEVER += [(low, high) for low in ("base", "metrics", "exec", "pool") for high in ("http", "net", "config", "server")]

NEVER += [("upstream", "exchange"), ("exchange", "downstream"), ("downstream", "server"), ("server", "commands")]

# The directories of the pool: a file includes its own directory and those before it. pool/ itself is open to all.
POOL = ["policy", "core", "queue", "destination", "directory"]

# header of a library -> the only files that may include it; tests may include what they test with
WRAPPERS = {
    "uv.h": ["exec/uv/*"],
    "sys/epoll.h": ["exec/uv/*"],
    "openssl/*": ["proxy/net/tls/*"],
    "llhttp.h": ["proxy/http/h1/*"],
    "nghttp2/*": ["proxy/http/h2/*"],
    "prometheus/*": ["metrics/prometheus*"],
    "toml++/*": ["proxy/config/read*"],
    "toml.hpp": ["proxy/config/read*"],
    "ares*.h": ["proxy/net/dns/*"],
    "spdlog/*": ["proxy/telemetry/*"],
    "fmt/*": ["proxy/telemetry/*"],
    "nlohmann/*": ["proxy/server/admin/*", "proxy/server/oauth2/token_reply*", "proxy/commands/*"],
    "zlib.h": ["proxy/server/admin/gzip*"],
    "idn2.h": ["pool/origin*"],
    "gtest/*": [],
    "gmock/*": [],
    "benchmark/*": [],
}
VERSIONS = "proxy/commands/libraries.cc"  # asks each library for its version

# Each of these names the partner of every memory order in it.
ATOMICS = ["proxy/config/in_force*", "proxy/upstream/origin/origin_runtime*", "pool/atomic*", "pool/core/entry*", "pool/core/pool*", "pool/destination/environment*", "pool/core/blocks*", "pool/core/finder*", "pool/core/object_pool*", "pool/core/capacity*", "pool/queue/borrower*", "pool/destination/destination*", "pool/queue/delivery*", "pool/destination/ledger*", "pool/policy/limits*", "pool/policy/endpoint*", "pool/destination/slot*", "pool/queue/class_quota*",
           "pool/queue/connection_budget*", "pool/policy/borrow_history*", "pool/policy/response_times*", "pool/policy/auto_size*", "pool/destination/auto_size*", "exec/atomic.h", "exec/mail*", "exec/coalesced_mail*", "exec/uv/loop*", "exec/strategy*", "exec/task_limit*", "exec/reserved_slots*", "exec/reserved_threads*", "exec/thread_pool_worker*", "exec/parker*", "metrics/*",
           "proxy/downstream/listener*", "proxy/downstream/client_acceptor*", "proxy/downstream/client_list*", "proxy/exchange/listen_point*", "proxy/server/drain*", "proxy/exchange/accept_budget*", "proxy/exchange/load_shedding*", "proxy/exchange/overload_state*", "proxy/server/overload/*", "proxy/telemetry/resource_usage*", "proxy/server/reload/reloader*", "proxy/server/admin/admin_sessions*", "proxy/server/admin/event_feed*", "proxy/server/admin/h2_connection*", "proxy/upstream/origin/continued_count*", "proxy/upstream/origin/connect_cost*", "proxy/server/admin_control*", "proxy/upstream/origin/tls_identity*", "proxy/upstream/origin/credentials*", "proxy/upstream/origin/oauth_token*", "proxy/upstream/connection*", "proxy/upstream/untracked_connections*", "proxy/upstream/origin/origin_registry*", "proxy/telemetry/log_levels*", "proxy/net/egress_policy*", "proxy/net/address_set*", "proxy/server/server*"]


def components(tree):
    """name -> (directories, components it links), from the carpool_component lines."""
    found = {}
    for body in COMPONENT.findall((tree.root / "CMakeLists.txt").read_text()):
        words, key = body.split(), "NAME"
        parts = {"NAME": [], "DIRS": [], "LINK": [], "PRIVATE": []}
        for word in words:
            if word in parts:
                key = word
            else:
                parts[key].append(word)
        name = parts["NAME"][0]
        found[name] = (parts["DIRS"] or [name], [w.removeprefix("carpool_") for w in parts["LINK"] if w.startswith("carpool_")])
    return found


def reach(known_components, name):
    seen, todo = set(), [name]
    while todo:
        component = todo.pop()
        if component not in seen:
            seen.add(component)
            todo += known_components[component][1]
    return seen


def component_of(known_components, path):
    """The component whose directory is the longest prefix of the path."""
    best = max((d for dirs, _ in known_components.values() for d in dirs if path.startswith(d + "/")), key=len, default=None)
    return next((name for name, (dirs, _) in known_components.items() if best in dirs), None) if best else None


def includes(tree, paths):
    for path, line, match in tree.grep(paths, INCLUDE):
        yield path, line, match.group(1), match.group(2)


def rank(path):
    """The place of a file's directory in the order of the pool's; -1: pool/ itself."""
    parts = path.split("/")
    return POOL.index(parts[1]) if len(parts) == 3 else -1


def include_direction(tree):
    known_components = components(tree)
    for low, high in NEVER:
        if low in known_components and high in reach(known_components, low):
            yield Offence("CMakeLists.txt", 1, "component %s reaches component %s" % (low, high))
    allowed = {name: reach(known_components, name) for name in known_components}
    for path, line, quote, header in includes(tree, tree.product()):
        component, other = component_of(known_components, path), component_of(known_components, header)
        if quote == '"' and other is None:
            yield Offence(path, line, '"%s" is not a path from the root' % header)
        elif component and other and other not in allowed[component]:
            yield Offence(path, line, "component %s may not include %s of component %s" % (component, header, other))
        elif component == other == "pool" and rank(header) > rank(path):
            yield Offence(path, line, "%s may not include %s of the pool" % (path.rpartition("/")[0], header))


# Implementation files of one class or codec that know each other, each set within one directory. Nothing joins this list.
PARTS_OF_ONE = [
    {"exec/loop", "exec/timer"},
    {"exec/task", "exec/task_limit", "exec/thread_pool", "exec/thread_pool_worker"},
    {"pool/destination/" + part for part in ("deferred_actions", "destination", "destination_impl", "destination_state", "grant", "lease", "ledger", "rejection", "slot", "snapshot")},
    {"proxy/config/schema", "proxy/config/setting_row"},
    {"proxy/config/check", "proxy/config/check_rules", "proxy/config/read"},
    {"proxy/telemetry/log", "proxy/telemetry/log_levels", "proxy/telemetry/log_line", "proxy/telemetry/log_output"},
    {"proxy/net/tls/client_context", "proxy/net/tls/client_context_impl", "proxy/net/tls/material"},
    {"proxy/net/tls/socket_bio", "proxy/net/tls/tls_transport", "proxy/net/tls/verify"},
    {"proxy/net/dns/channel", "proxy/net/dns/resolver"},
    {"proxy/http/forward", "proxy/http/hop_by_hop"},
    {"proxy/http/h1/body_reader", "proxy/http/h1/codec", "proxy/http/h1/field_reader"},
    {"proxy/http/h2/session", "proxy/http/h2/session_impl"},
    {"proxy/upstream/h2/connection", "proxy/upstream/h2/stream"},
    {"proxy/downstream/h2_client", "proxy/downstream/h2_client_stream"},
    {"proxy/server/admin/json", "proxy/server/admin/response"},
]


def include_cycle(tree):
    """No header reaches itself, without exception; of units (x.h and x.cc) only the listed ones include each other."""
    for cycle in graph.cycles(graph.includes(tree), str):
        yield Offence(min(cycle), 1, "include cycle of headers: " + " ".join(sorted(cycle)))
    for cycle in graph.cycles(graph.includes(tree)):
        if not any(cycle <= parts for parts in PARTS_OF_ONE):
            yield Offence(min(cycle) + ".h", 1, "include cycle: " + " ".join(sorted(cycle)))


ROOT_FILES = 12  # of proxy/


def root_files(tree):
    at_root = [p for p in tree.product() if p.startswith("proxy/") and p.count("/") == 1]
    if len(at_root) > ROOT_FILES:
        yield Offence("proxy", 1, "%d files, at most %d: each belongs to a directory" % (len(at_root), ROOT_FILES))


HEADERS_REACHED = 67  # by nine files of ten in proxy/


def headers_reached(tree):
    """How much of the tree a reader of one file has before them."""
    includes_of = graph.includes(tree)
    counts = sorted((len(graph.reached(includes_of, p)), p) for p in includes_of if p.startswith("proxy/") and p.endswith(".cc"))
    if not counts:
        return
    count, path = counts[len(counts) * 9 // 10]
    if count > HEADERS_REACHED:
        yield Offence(path, 1, "reaches %d headers: nine files of ten in proxy/ may reach %d" % (count, HEADERS_REACHED))


def one_wrapper(tree):
    for path, line, _, header in includes(tree, tree.product()):
        for pattern, wrappers in WRAPPERS.items():
            if path != VERSIONS and fnmatch.fnmatch(header, pattern) and not any(fnmatch.fnmatch(path, d) for d in wrappers):
                yield Offence(path, line, "<%s> belongs to %s" % (header, ", ".join(wrappers) or "tests"))


def named_atomics(tree):
    atomic = re.compile(r"\bstd::atomic\w*|\batomic_thread_fence\b|#include <atomic>")
    for path, line, match in tree.grep(tree.product(), atomic):
        if not any(fnmatch.fnmatch(path, a) for a in ATOMICS):
            yield Offence(path, line, "%s outside the files named in tests/tidy/layering.py" % match.group(0))


# A file that orders memory by an atomic is explored (EXPLORED) or publishes one value: a single release with a single acquire.
# All other atomics are statistics and hints: relaxed.
EXPLORED = ["pool/*", "exec/mailbox*", "exec/coalesced_mail*", "exec/parker*", "exec/reserved_slots*", "exec/strategy_word*"]
PUBLISHING = {
    "metrics/registry*": "the shard of an origin and loop",
    "proxy/net/egress_policy*": "the rules in force",
    "proxy/config/in_force*": "the configuration in force",
    "proxy/exchange/listen_point*": "the settings of a listener",
    "proxy/upstream/origin/tls_identity*": "the fingerprint in force",
    "proxy/upstream/origin/credentials*": "the version of the values",
    "proxy/upstream/origin/oauth_token*": "the number of the token",
    "proxy/server/overload/memory_reserve*": "a slice of the reserve, taken by one exchange",
    "proxy/server/admin_control*": "the answer of a task",
    "proxy/server/admin/h2_connection*": "bits for the other side, a mail that is free again, and the last user",
    "proxy/downstream/client_acceptor*": "the clients of a loop, relaxed",
    "proxy/downstream/client_list*": "no client is left",
    "proxy/downstream/listener*": "two words, seq_cst: full, then the clients are read; a client less, then full is read",
    "exec/uv/loop*": "the loop is to stop",
}


def ordered_atomics(tree):
    order = re.compile(r"\bmemory_order_(?:consume|acquire|release|acq_rel|seq_cst)\b")
    for path, line, match in tree.grep(tree.product(), order):
        if not any(fnmatch.fnmatch(path, known) for known in (*EXPLORED, *PUBLISHING)):
            yield Offence(path, line, "%s: the explorer does not see it, and tests/tidy/layering.py does not name it" % match.group(0))
