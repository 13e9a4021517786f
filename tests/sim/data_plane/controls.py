#!/usr/bin/env python3
"""Measures how soon data_plane_sim finds defects that were mended once: takes each mending back in a copy of its file.

    tests/sim/data_plane/controls.py [--seconds N] [--only REGEX]

One program holds all of them, and CARPOOL_MUTANT selects one. It is linked from the release build's libraries, which must
exist. The unchanged program runs first: no oracle may complain about it. Ends with 1 if one does, or if a defect is not found
within the time."""
import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/mutants"))
from choice import HEADER, chosen_between  # noqa: E402

BUILD = ROOT / "build/release"
TABLE = [
    ("an interim response stays in the loop's memory", "proxy/downstream/h1_client_output.cc",
     "http::write_informational(out().text(), head, context_.pseudonym);\n  return flush();",
     "http::write_informational(out().text(), head, context_.pseudonym);\n  return true;"),
    ("interim responses have no limit", "proxy/http/h1/response_reader.cc", "if (wrong != nullptr) return fail(FaultKind::informational_limit, wrong);", ""),
    ("421 is repeated again and again", "proxy/exchange/retry_state.cc", "reason == RetryReason::misdirected && misdirected_ != 0",
     "false"),
    ("a request that was sent counts as not sent", "proxy/upstream/h1_stream.cc",
     "failure.any_byte_sent = write_queue_.bytes_written() > 0;", "failure.any_byte_sent = false;"),
    ("a response that began counts as none", "proxy/upstream/h1_stream.cc", "failure.any_byte_back = reader_.any_byte();",
     "failure.any_byte_back = false;"),
    ("surplus bytes leave a connection clean", "proxy/upstream/h1_stream.cc", "attempt_.leftover = used < bytes.size();",
     "attempt_.leftover = false;"),
    ("a connection is reused in the middle of a request", "proxy/upstream/h1_stream.cc",
     "attempt_.asked_whole && write_queue_.empty() && out_.empty()", "write_queue_.empty() && out_.empty()"),
    ("a truncated response looks complete", "proxy/upstream/h1_stream.cc", "if (end) return user_.on_response_end();",
     "return user_.on_response_end();"),
    ("DATA before the final head is a body", "proxy/http/h2/session_receive.cc",
     "if (!stream.incoming_.data(bytes.size())) return out_of_order(stream);", ""),
    ("HTTP_1_1_REQUIRED leads an HTTP/2-only origin to HTTP/1.1", "proxy/exchange/exchange_retry.cc",
     "failure.ask_h1 && !info_.origin->speaks.h1", "false"),
    ("attempts have no bound", "proxy/exchange/retry_state.cc", "attempts() >= most_attempts(max_retries)", "false"),
    ("a client's waiting bytes are lost when its response breaks off", "proxy/downstream/h1_client_input.cc",
     "cut_ = close_is_end_ || next == AfterExchange::spoilt;\n      close_when_sent_ = true;", "return lost();"),
    ("a stream's waiting bytes are lost when its response breaks off", "proxy/downstream/h2_client_stream.cc",
     "client_.session().cut(*stream, tunnel_ ? http::H2Error::connect_error : http::H2Error::internal_error);",
     "client_.session().reset(*stream, http::H2Error::internal_error);"),
    ("101 inside a request's body opens the tunnel", "proxy/exchange/exchange_tunnel.cc",
     "if (switched_too_early()) return AttemptState::over;", ""),
    ("bytes of a tunnel are framed as the request was", "proxy/upstream/h1_stream.cc",
     "attempt_.tunnel || attempt_.framing != http::Framing::chunked", "attempt_.framing != http::Framing::chunked"),
    ("bytes that follow 101 at once are lost", "proxy/exchange/exchange_tunnel.cc", "client_stream_->send_body(rest);", ""),
    ("the client's FIN ends with the proxy", "proxy/exchange/exchange_tunnel.cc",
     "attempt_->upstream_stream->shut_write_when_sent();", ""),
    ("FIN overtakes the bytes of a tunnel's client", "proxy/upstream/h1_stream.cc", "attempt_.shut_when_sent = true;",
     "transport().shut_write();"),
    ("FIN overtakes the bytes of a tunnel's origin", "proxy/downstream/h1_client_output.cc", "shut_after_flush_ = true;",
     "transport_->shut_write();"),
    ("early bytes of an HTTP/2 tunnel are sent from freed memory", "proxy/downstream/h2_client_stream.cc",
     "pump();  // the upstream stream's batch refers to `bytes` until it is sent", "client_.pump_soon(*this);"),
    ("the end of an HTTP/2 client's tunnel is lost", "proxy/downstream/h2_client_stream.cc",
     "if (exchange_ != nullptr && inbox_.take_end()) exchange_->on_tunnel_input_end();", ""),
    ("the window of an HTTP/2 client's bytes stays closed", "proxy/downstream/h2_client_stream.cc",
     "client_.session().consume(*stream_, std::exchange(held_, 0));", "held_ = 0;"),
    ("an HTTP/2 client waits for ever behind a window that it never opens", "proxy/downstream/h2_client_close.cc",
     "running_ == 0 || session_.backlog() != 0", "session_.streams() == 0 || session_.backlog() != 0"),
    ("HTTP/1.0 gets a transfer coding", "proxy/downstream/h1_client_output.cc", "rules.client_version = request.version;",
     "rules.client_version = http::Version::http11;"),
    ("HTTP/1.0 gets interim responses", "proxy/downstream/h1_client_output.cc",
     "if (exchange_->request().version != http::Version::http11) return true;", ""),
    ("a response that its close delimits ends in order though it is truncated", "proxy/downstream/h1_client_input.cc",
     "cut_ = close_is_end_ || next == AfterExchange::spoilt;", "cut_ = false;"),
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
     "authenticates_connection(request_) || authenticates_connection(response_)", "authenticates_connection(response_)"),
    ("a client's own connection serves its requests to other origins", "proxy/downstream/h1_client_close.cc",
     "!private_ || private_->origin().destination != origin.destination", "!private_"),
    ("a body that follows a 417 is parsed as a request", "proxy/downstream/h1_client_input.cc",
     "std::exchange(repeat_, {}) != std::string(request.method).append(1, ' ').append(request.target)", "repeat_.clear(), false"),
    ("after an early response the rest of a body is parsed as a request", "proxy/exchange/exchange_response.cc",
     "if (request_body_.ended()) return true;", "return true;"),
    ("a client that half-closes gets no response", "proxy/downstream/h1_client_input.cc",
     "if (!head_complete_) return close();  // within a head: the client waits for no response", "return close();"),
    ("an HTTP/2 client's tunnel never ends from its origin", "proxy/downstream/h2_client_stream.cc",
     "if (stream_ == nullptr || std::exchange(ended_, true)) return;", "return;"),
    ("all HTTP/2 streams after GOAWAY count as unprocessed", "proxy/upstream/h2/stream.cc",
     "failure.unprocessed && connection_->given_up(stream_->id())", "true"),
    ("bytes that a socket refused are sent twice", "proxy/net/write_queue.cc", "pieces[first].iov_len -= left;", "{}"),
    ("an HTTP/2 stream's trailers reach an origin on another loop without it", "proxy/upstream/h2/cross_loop_stream.cc",
     "next_request_part_.trailers = trailers;", ""),
]


def changed_text(path, mutants):
    text = (ROOT / path).read_text()
    places = {}
    for number, old, new in mutants:
        if text.count(old) != 1:
            sys.exit(f"{path}: the text occurs {text.count(old)} times: {old}")
        places.setdefault(old, []).append((number, new))
    for old, variants in places.items():
        text = text.replace(old, chosen_between(old, variants))
    return HEADER + text


def build(into):
    commands = {entry["file"]: entry for entry in json.loads((BUILD / "compile_commands.json").read_text())}
    by_path = {}
    for number, (_, path, old, new) in enumerate(TABLE, 1):
        by_path.setdefault(path, []).append((number, old, new))
    objects = []
    for path, mutants in by_path.items():
        copy, entry = into / path.replace("/", "_"), commands[str(ROOT / path)]
        copy.write_text(changed_text(path, mutants))
        words = shlex.split(entry["command"])
        words = [word for word in words if "pch" not in word and word not in ("-include", "-Winvalid-pch")]
        words[words.index("-o") + 1] = str(copy) + ".o"
        words[words.index("-c") + 1] = str(copy)
        subprocess.run([*words, "-w", "-I", str(ROOT)], cwd=entry["directory"], check=True)
        objects.append(str(copy) + ".o")
    lines = subprocess.run(["ninja", "-t", "commands", "data_plane_sim"], cwd=BUILD, check=True, capture_output=True, text=True)
    link = lines.stdout.splitlines()[-1].replace("-o tests/data_plane_sim", "-o %s %s" % (into / "sim", " ".join(objects)))
    subprocess.run(link, cwd=BUILD, check=True, shell=True)
    return into / "sim"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(pathlib.Path(folder))
        for number, name in [(0, "none: the unchanged program"), *((n, row[0]) for n, row in enumerate(TABLE, 1))]:
            if number and not re.search(asked.only, name):
                continue
            began = time.monotonic()
            ran = subprocess.run([program, "--seconds", str(asked.seconds), "--shrink", "no"], capture_output=True, text=True, errors="replace",
                                 env={**os.environ, "CARPOOL_MUTANT": str(number)})
            found = ran.returncode != 0
            missed += found != (number != 0)
            why = [line for line in (ran.stdout + ran.stderr).splitlines() if "FAILED" in line or "assert" in line.lower()]
            print(f"{time.monotonic() - began:6.1f} s  {'found' if found else 'no complaint'}: {name}  {why[:1]}", flush=True)
    sys.exit(missed != 0)


if __name__ == "__main__":
    main()
