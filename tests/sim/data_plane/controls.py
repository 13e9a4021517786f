#!/usr/bin/env python3
"""Measures how soon data_plane_sim finds defects: those that were mended once, and at least one for each of its oracles.

    tests/sim/data_plane/controls.py [--seconds N] [--only REGEX] [--table]

One program holds all of them, and CARPOOL_MUTANT selects one: that of the release build, linked anew with the mutated
files. The unchanged program runs first: no oracle may complain about it. Ends with 1 if one does, or if a defect is not
found within the time. --table: prints the table of docs/testing-simulation.md at the end."""
import argparse
import os
import pathlib
import re
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/mutants"))
from linked_build import LinkedBuild  # noqa: E402
from mutant import Mutant  # noqa: E402

PROGRAM = "data_plane_sim"
TABLE = [
    ("an interim response stays in the loop's memory", "proxy/downstream/h1_client_output.cc",
     "http::write_informational(out().text(), head, context_.pseudonym);\n  return flush();",
     "http::write_informational(out().text(), head, context_.pseudonym);\n  return true;"),
    ("interim responses have no limit", "proxy/http/h1/response_reader.cc", "if (error != nullptr) return fail(FaultKind::informational_limit, error);", ""),
    ("a request answered with 421 is retried without limit", "proxy/exchange/retry_state.cc", "reason == RetryReason::misdirected && misdirected_ != 0",
     "false"),
    ("a request that was sent counts as not sent", "proxy/upstream/h1_stream.cc",
     "failure.any_byte_sent = write_queue_.bytes_written() > 0;", "failure.any_byte_sent = false;"),
    ("a response that began counts as none", "proxy/upstream/h1_stream.cc", "failure.any_byte_received = reader_.any_byte();",
     "failure.any_byte_received = false;"),
    ("surplus bytes leave a connection clean", "proxy/upstream/h1_stream.cc", "attempt_.leftover = used < bytes.size();",
     "attempt_.leftover = false;"),
    ("a connection is reused in the middle of a request", "proxy/upstream/h1_stream.cc",
     "(attempt_.end_sent || length_sent) && write_queue_.empty()", "write_queue_.empty()"),
    ("a truncated response looks complete", "proxy/upstream/h1_stream.cc", "if (end) return user_.on_response_end();",
     "return user_.on_response_end();"),
    ("DATA before the final head is a body", "proxy/http/h2/session_receive.cc",
     "if (!stream.incoming_.data(bytes.size())) return out_of_order(stream);", ""),
    ("HTTP_1_1_REQUIRED of an HTTP/2-only origin is followed by another attempt", "proxy/upstream/stream_failure.cc",
     "ask_h1 && !allows_h1", "false"),
    ("attempts have no bound", "proxy/exchange/retry_state.cc", "attempts() >= max_attempts(max_retries)", "false"),
    ("a client's waiting bytes are lost when its response breaks off", "proxy/downstream/h1_client_input.cc",
     "close_when_sent(response_end_ == ResponseEnd::delimited || next == AfterExchange::malformed_end);", "return lost();"),
    ("a stream's waiting bytes are lost when its response breaks off", "proxy/downstream/h2_client_stream.cc",
     "client_.session().cut(*stream, error);",
     "client_.session().reset(*stream, http::H2Error::internal_error);"),
    ("101 inside a request's body opens the tunnel", "proxy/exchange/exchange_tunnel.cc",
     "if (switched_too_early()) return AttemptState::over;", ""),
    ("bytes of a tunnel are framed as the request was", "proxy/upstream/h1_stream.cc",
     "attempt_.tunnel() || attempt_.framing != http::Framing::chunked", "attempt_.framing != http::Framing::chunked"),
    ("bytes that follow 101 at once are lost", "proxy/exchange/exchange_tunnel.cc", "client_stream_->send_body(rest);", ""),
    ("the client's FIN does not reach the origin", "proxy/exchange/exchange_tunnel.cc",
     "attempt_->upstream_stream->shut_write_when_sent();", ""),
    ("FIN overtakes the bytes of a tunnel's client", "proxy/upstream/h1_stream.cc", "if (write_queue_.empty()) pass_end_on();",
     "pass_end_on();"),
    ("FIN overtakes the bytes of a tunnel's origin", "proxy/downstream/h1_client_tunnel.cc", "shut_after_flush_ = true;",
     "transport_->shut_write();"),
    ("early bytes of an HTTP/2 tunnel are sent from freed memory", "proxy/downstream/h2_client_stream.cc",
     "if (!bytes.empty()) exchange_->on_tunnel_bytes(bytes);\n  pump();", "if (!bytes.empty()) exchange_->on_tunnel_bytes(bytes);\n  client_.pump_soon(*this);"),
    ("early bytes of an HTTP/2 request are sent from freed memory", "proxy/downstream/h2_client_stream.cc",
     "if (exchange_ != nullptr && complete_) exchange_->on_request_end();\n  pump();",
     "if (exchange_ != nullptr && complete_) exchange_->on_request_end();\n  client_.pump_soon(*this);"),
    ("the end of an HTTP/2 client's tunnel is lost", "proxy/downstream/h2_client_stream.cc",
     "if (exchange_ != nullptr && inbox_.take_end()) exchange_->on_tunnel_input_end();", ""),
    ("the window of an HTTP/2 client's bytes stays closed", "proxy/downstream/h2_client_stream.cc",
     "client_.session().consume(*stream_, std::exchange(held_, 0));", "held_ = 0;"),
    ("an HTTP/2 client waits forever behind a window that it never opens", "proxy/downstream/h2_client_close.cc",
     "running_ != 0 && !outlived", "session_.streams() != 0"),
    ("HTTP/1.0 gets a transfer coding", "proxy/downstream/h1_client_output.cc", "rules.client_version = request.version;",
     "rules.client_version = http::Version::http11;"),
    ("HTTP/1.0 gets interim responses", "proxy/downstream/h1_client_output.cc",
     "if (exchange_->request().version != http::Version::http11) return true;", ""),
    ("a response that its close delimits ends cleanly though it is truncated", "proxy/downstream/h1_client_input.cc",
     "response_end_ == ResponseEnd::delimited || next == AfterExchange::malformed_end", "false"),
    ("a request loses its trailers", "proxy/exchange/request_body.cc", "if (to != nullptr) to->send_end(trailers_);",
     "if (to != nullptr) to->send_end(http::Fields());"),
    ("a repeated request loses its trailers", "proxy/exchange/request_body.cc", "if (ended_) to.send_end(trailers_);",
     "if (ended_) to.send_end(http::Fields());"),
    ("a response loses its trailers", "proxy/exchange/exchange_response.cc", "client_stream_->send_end(attempt_->trailers);",
     "client_stream_->send_end(http::Fields());"),
    ("trailers of an earlier response are sent again", "proxy/exchange/exchange_response.cc", "attempt_->trailers.clear();", ""),
    ("a connection that authenticated a client returns to the pool", "proxy/exchange/exchange_response.cc",
     "attempt_->authenticated && !unclean", "false"),
    ("credentials of a connection count for nothing without a challenge", "proxy/exchange/exchange_response.cc",
     "authenticates_connection(request_) || authenticates_connection(*response_)", "authenticates_connection(*response_)"),
    ("a request answered with 421 leaves its client's own connection", "proxy/exchange/exchange_retry.cc",
     "if (attempt_->authenticated) return false;", ""),
    ("a client's own connection serves its requests to other origins", "proxy/downstream/h1_client_close.cc",
     "!private_ || private_->destination() != origin.destination", "!private_"),
    ("after an early response the rest of a body is parsed as a request", "proxy/exchange/exchange_response.cc",
     "!request_ended() || !context_.keeps_clients()", "!context_.keeps_clients()"),
    ("a client that half-closes gets no response", "proxy/downstream/h1_client_input.cc",
     "if (request_state_ == RequestState::head) drop_exchange();", "return close();"),
    ("the origin's end of a tunnel does not reach an HTTP/2 client", "proxy/downstream/h2_client_stream.cc",
     "if (stream_ == nullptr || std::exchange(ended_, true)) return;", "return;"),
    ("all HTTP/2 streams after GOAWAY count as unprocessed", "proxy/upstream/h2/stream.cc",
     "failure.unprocessed && connection_->excluded_by_goaway(stream_->id())", "true"),
    ("bytes that a socket refused are sent twice", "proxy/net/write_queue.cc", "pieces[first].iov_len -= left;", "{}"),
    ("an HTTP/2 stream's trailers reach an origin on another loop without it", "proxy/upstream/h2/cross_loop_stream.cc",
     "next_request_part_.trailers = trailers;", ""),
    # ---- memory ----
    ("a response is read although its client does not read", "proxy/exchange/exchange_response.cc",
     "client_stream_->backlog() < kHighWatermark", "true"),
    ("a request's body is read although its origin does not read", "proxy/exchange/exchange_forward.cc",
     "return attempt_->upstream_stream->backlog() < kHighWatermark;", "return true;"),
    ("the window of an HTTP/2 client stays open although its origin does not read", "proxy/downstream/h2_client_stream.cc",
     "(exchange_ != nullptr && !exchange_->wants_input())", "false"),
    ("the window of an HTTP/2 origin stays open although its client does not read", "proxy/upstream/h2/stream.cc",
     "unreturned_ == 0 || !user_.wants_response()", "unreturned_ == 0"),
    ("pipelined requests are read without limit", "proxy/downstream/h1_client.cc",
     "pending_->size() < kHighWatermark", "true"),
    # ---- frames and windows ----
    ("a stream's window is opened again and again by the same bytes", "proxy/http/h2/session_streams.cc",
     "std::exchange(stream.returned_, 0)", "stream.returned_"),
    ("a window is taken for larger than its receiver made it", "proxy/http/h2/session_receive.cc", "  return consumed;",
     """  if (role == H2Role::client && (bytes.size() == 9 || bytes.size() == 15)) {
    std::uint8_t more[13] = {0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0};
    nghttp2_session_mem_recv(session, more, sizeof more);
    more[8] = 1;
    if (nghttp2_session_find_stream(session, 1) != nullptr) nghttp2_session_mem_recv(session, more, sizeof more);
  }
  return consumed;"""),
    ("DATA follows the reset of its stream", "proxy/http/h2/session_send.cc",
     "if (stream.reset_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;", ""),
    ("streams are served one after another", "proxy/http/h2/session_receive.cc",
     "require(nghttp2_session_change_extpri_stream_priority(session, frame.hd.stream_id, &in_turn, 1));", ""),
    # ---- turns ----
    ("an origin's pause is ignored", "proxy/exchange/exchange_cool_down.cc",
     "if (lease.trial() || info_.origin->pool.cool_down) follow_cool_down(lease, head);",
     "static_cast<void>(head);"),
    ("an origin's pause may be of any length", "pool/destination/cool_down.cc", "now + std::min(wait, limits.max_cool_down)", "now + wait"),
    ("an origin's pause ends halfway", "pool/destination/cool_down.cc", "now + std::min(wait, limits.max_cool_down)",
     "now + std::min(wait, limits.max_cool_down) / 2"),
    ("requests go past an origin's pause", "pool/destination/cool_down.cc", "attention.fetch_or(kCooling, std::memory_order_seq_cst);", ""),
    ("all requests are sent at once after an origin's pause", "pool/destination/release.cc", "cool_down.trial_due() ? cool_down.begin_trial() : 0", "0"),
    ("a reload ends an origin's pause with the pool that it replaces", "pool/destination/cool_down.cc",
     "by_origin = predecessor.cool_down;", ""),
    ("a pause that an origin requests of a replaced pool holds no other", "proxy/exchange/exchange_cool_down.cc",
     "if (!was_replaced && !info_.origin->is_replaced()) return began;", "return began;"),
    ("waiters are served last in, first out", "pool/destination/borrow.cc", "borrower.virtual_finish_time_ = 0;",
     "borrower.virtual_finish_time_ = ~std::uint64_t{0} - borrower.ticket_;"),
    ("a client's later requests go before another client's first", "pool/destination/borrow.cc", "borrower.virtual_finish_time_ = 0;",
     "borrower.virtual_finish_time_ = borrower.ticket_;"),
    # ---- addresses ----
    ("a dial goes to the address with more connections", "proxy/net/address_set.cc",
     "load(addresses[other]) < load(addresses[one]) ? other : one", "load(addresses[other]) < load(addresses[one]) ? one : other"),
    ("an address without connections is dialed by chance", "proxy/net/address_set.cc",
     "if (!rules_.balance || load(addresses[best]) == 0) return best;", "return best;"),
    ("an ejected address is dialed first", "proxy/net/address_set.cc", "return !at(address).ejected(now);", "return true;"),
    ("all addresses may be ejected", "proxy/net/address_set.cc", "if (2 * (out + 1) > named) return;", ""),
    ("a connection that closed stays counted at its address", "proxy/net/address_set.cc", "  --place->open;\n", ""),
    ("connections are opened ahead of demand though no address lacks one", "pool/destination/borrow.cc",
     "endpoints.balance() != Endpoints::Balance::even && !lease.probe_", "endpoints.spreads() && !lease.probe_"),
    # ---- streaming origins ----
    ("silence ends an event stream", "proxy/exchange/exchange_response.cc", "info_.origin->streaming && is_event_stream(*response_)", "false"),
    ("silence ends no response", "proxy/exchange/exchange_response.cc", "info_.origin->streaming && is_event_stream(*response_)", "true"),
    # ---- reloads ----
    ("a reload leaves the earlier routes in use", "proxy/exchange/router.cc", "cache_.clear();", ""),
    ("an origin keeps its settings after a reload", "proxy/upstream/origin/origin_registry.cc", "current = *made;", ""),
    ("a request that waits in a replaced pool takes a connection of that pool", "proxy/exchange/exchange_borrow.cc",
     "if (info_.origin->is_replaced()) return leave_replaced(std::move(lease));", ""),
    ("a request whose pool has ended is refused", "proxy/exchange/exchange_borrow.cc",
     "if (origin.destination->reclaimed() || origin.is_replaced()) return borrow_from_new_destination(accepts);", ""),
    ("a pool ends while it dials", "pool/destination/reclaim.cc",
     """if (held || limits.min_idle != 0 || supply.dials() != 0) return false;
    if (lent_by(counters.get(), loops) != 0) return false;  // in use: its idle connections stay open
    end_some_idle(CloseCause::idle, actions);
    // A connection that was ended here keeps its place until it is disposed of; any other place is in use.
    gone = pool.in_use() == actions.ended.size() && tunnels.taken() == 0;""",
     """if (held || limits.min_idle != 0) return false;
    if (lent_by(counters.get(), loops) != 0) return false;
    end_some_idle(CloseCause::idle, actions);
    gone = pool.in_use() == actions.ended.size() + supply.dials() && tunnels.taken() == 0;"""),
    ("a pool ends while it is used", "pool/destination/reclaim.cc",
     """if (lent_by(counters.get(), loops) != 0) return false;  // in use: its idle connections stay open
    end_some_idle(CloseCause::idle, actions);
    // A connection that was ended here keeps its place until it is disposed of; any other place is in use.
    gone = pool.in_use() == actions.ended.size() && tunnels.taken() == 0;""",
     """end_some_idle(CloseCause::idle, actions);
    gone = true;"""),
    ("a session that never answered counts as one that served", "proxy/upstream/h2/stream.cc",
     "failure.never_answered = !connection_->has_answered();", ""),
    # ---- clients that leave ----
    ("a drained client of HTTP/1 stays", "proxy/downstream/h1_client_close.cc", "if (context_.loop.now() < last_request_until()) return arm_timer();\n  static_cast<void>(end_if_idle());", ""),
    ("a drained client's response does not announce the end of its connection", "proxy/downstream/h1_client_output.cc",
     "close || drain_ != Drain::none || private_state_ == PrivateState::broken", "close || private_state_ == PrivateState::broken"),
    ("a running request loses its response when its client is drained", "proxy/downstream/h1_client_close.cc",
     "if (state_ != State::open || exchange_runs()) return;",
     "if (state_ == State::open && exchange_runs()) {\n    enter(State::closing);\n    run_soon();\n  }\n  if (state_ != State::open) return;"),
    ("a running request loses its response when its client is to close once idle", "proxy/downstream/h1_client_close.cc",
     "state_ != State::open || exchange_runs() || in_head()", "state_ != State::open || in_head()"),
    ("a client closes in the middle of a request's head", "proxy/downstream/h1_client_close.cc",
     "exchange_runs() || in_head()", "exchange_runs()"),
    ("a running request loses its response when the connection that authenticated its client ends", "proxy/downstream/h1_client_close.cc",
     "if (state_ == State::open) static_cast<void>(end_if_idle());",
     "if (state_ == State::open && !in_head()) {\n    enter(State::closing);\n    run_soon();\n  }"),
    ("a drained client of HTTP/2 is not told to leave", "proxy/downstream/h2_client_close.cc", "session_.goaway(http::H2Error::no_error);\n  flush_soon();",
     "flush_soon();"),
    # ---- interim responses ----
    ("100 (Continue) does not reach an HTTP/2 client", "proxy/downstream/h2_client_stream_output.cc",
     "client_.session().inform(*stream_, *fields);", ""),
]


def mutants():
    return [Mutant(*row, PROGRAM) for row in TABLE]


def build(chosen):
    """Returns the command that runs the simulation with the chosen defects, by their numbers, in it."""
    numbered = list(enumerate(mutants(), 1))
    return LinkedBuild(ROOT, ROOT / "build/mutants/controls", numbered, chosen).build(PROGRAM)[:1]


def play(program, number, seconds):
    """Returns whether an oracle complained, the seconds of CPU until then, the histories and the complaint."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run([*program, "--seconds", str(seconds), "--shrink", "no"], capture_output=True, text=True, errors="replace",
                         env={**os.environ, "CARPOOL_MUTANT": str(number)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = ran.stdout + ran.stderr
    why = [line.split(": ", 1)[-1] for line in said.splitlines() if "FAILED" in line or "assert" in line.lower()]
    seed = re.search(r"--seed (\d+)", said)
    return ran.returncode != 0, took, int(seed.group(1)) if seed else 0, (why or [""])[0]


def table(rows):
    lines = ["| defect | seconds | histories |", "|---|---|---|"]
    return "\n".join(lines + ["| %s | %.1f | %s |" % (name, took, format(histories, ",")) for name, took, histories in rows])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    chosen = [n for n, row in enumerate(TABLE, 1) if re.search(asked.only, row[0])]
    missed, rows, program = 0, [], build(chosen)
    for number, name in [(0, "none: the unchanged program"), *((n, TABLE[n - 1][0]) for n in chosen)]:
        found, took, histories, why = play(program, number, asked.seconds)
        missed += found != (number != 0)
        if number and found:
            rows.append((name, took, histories))
        print(f"{took:6.1f} s  {'found' if found else 'no complaint'}: {name}  {why}", flush=True)
    if asked.table:
        print(table(rows))
    sys.exit(missed != 0)


if __name__ == "__main__":
    main()
