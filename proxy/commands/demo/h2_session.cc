#include "proxy/commands/demo/h2_session.h"

#include <algorithm>
#include <utility>

#include "proxy/net/read_with_budget.h"

namespace carpool::proxy {
namespace {

constexpr Duration kH2Stall = std::chrono::seconds(30);      // timeout while a request is in progress
constexpr std::size_t kPull = std::size_t{64} * 1024;        // bytes of frames per write
constexpr std::size_t kQueued = std::size_t{2} * 64 * 1024;  // of an endless body: bytes queued at a time

}  // namespace

// ---- one request ----

DemoH2Session::Call::Call(DemoH2Session& session, http::H2Stream& stream, const http::RequestHead& head)
    : session_(session),
      stream_(&stream),
      reply_(demo_reply(head, session.visit(session.requests_))),
      request_(session.requests_),
      bodiless_(head.method == "HEAD"),
      length_(head.length),
      has_length_(head.framing != http::Framing::chunked) {
  if (reply_.echo) respond(bodiless_);
}

void DemoH2Session::Call::respond(bool end) {
  http::H2Fields fields;
  fields.add(":status", std::to_string(reply_.status));
  fields.add("server", "carpool-demo");
  fields.add("content-type", reply_.echo ? "application/octet-stream" : "text/plain; charset=utf-8");
  fields.add("demo-connection", std::to_string(session_.number_));
  fields.add("demo-request", std::to_string(request_));
  const std::uint64_t length = reply_.echo ? length_ : reply_.fill != 0 ? reply_.fill : reply_.body.size();
  if (!reply_.echo || has_length_) fields.add("content-length", std::to_string(length));
  session_.session_.respond(*stream_, fields, end);
}

void DemoH2Session::Call::respond() {
  due_ = kNever;
  if (over()) return;
  respond(bodiless_);
  if (!bodiless_) {
    session_.session_.body(*stream_, reply_.body);
    fill_left_ = reply_.fill;
    fill();
  }
  if (reply_.close) session_.session_.goaway(http::H2Error::no_error);
}

// Queues a limited amount of the body; the rest follows as it is sent.
void DemoH2Session::Call::fill() {
  while (fill_left_ > 0 && stream_->backlog() < kQueued) {
    const std::string_view block = demo_fill().substr(0, std::min<std::uint64_t>(demo_fill().size(), fill_left_));
    session_.session_.body(*stream_, block);
    fill_left_ -= block.size();
  }
  if (fill_left_ == 0) session_.session_.end(*stream_);
}

// The window of an echo is extended as its bytes are sent, so that neither direction overtakes the other.
void DemoH2Session::Call::on_body(std::string_view bytes) {
  if (reply_.echo && !bodiless_) return session_.session_.body(*stream_, bytes);
  session_.session_.consume(*stream_, bytes.size());
}

void DemoH2Session::Call::on_end() {
  if (reply_.echo) {
    if (!bodiless_) session_.session_.end(*stream_, trailers_);
    return;
  }
  if (reply_.delay <= Duration::zero()) return respond();
  due_ = session_.loop_.now() + reply_.delay;
}

void DemoH2Session::Call::on_sent(std::size_t bytes) {
  if (over()) return;
  if (reply_.echo) return session_.session_.consume(*stream_, bytes);
  if (fill_left_ > 0) fill();
}

// ---- the connection ----

DemoH2Session::DemoH2Session(exec::Loop& loop, Owner& owner, std::unique_ptr<tls::TlsTransport> stream,
                             std::uint64_t number, Duration idle_timeout)
    : loop_(loop),
      owner_(owner),
      stream_(std::move(stream)),
      number_(number),
      idle_timeout_(idle_timeout),
      timer_(exec::Timer::bind<&DemoH2Session::on_timer>(loop, *this)),
      session_(http::H2Role::server, {}, *this) {}

DemoH2Session::~DemoH2Session() {
  exec::assume_on_loop();
  loop_.unwatch(stream_->fd(), key_);
}

Status DemoH2Session::start() {
  Result<exec::WatchKey> key = loop_.watch(stream_->fd(), *this);
  if (!key) return key.take_fault();
  key_ = *key;
  arm();
  return Done{};
}

void DemoH2Session::on_ready(exec::Ready ready) {
  stream_->on_readiness(ready);
  advance();
}

void DemoH2Session::run() {
  advance();
}

void DemoH2Session::on_timer() {
  exec::assume_on_loop();
  const Instant now = loop_.now();
  bool answered = false;
  for (Call& call : calls_) {
    if (call.due() > now) continue;
    call.respond();
    answered = true;
  }
  // Checks whether the idle or stall timeout has passed.
  if (!answered && !established_) closed_ = true;
  if (!answered && established_) session_.terminate(http::H2Error::no_error, http::H2Abuse::none);
  advance();
}

// May destroy this session, so it must be the last call.
void DemoH2Session::advance() {
  if (!closed_ && (established_ || step_handshake())) {
    read_some();
    flush();
  }
  calls_.remove_if([](const Call& call) { return call.over(); });
  if (closed_) return owner_.on_session_end(*this);
  arm();
}

bool DemoH2Session::step_handshake() {
  const Result<bool> done = stream_->handshake();
  closed_ = !done || (*done && stream_->security().alpn != "h2");
  established_ = !closed_ && *done;
  if (established_) protocol_.append(" over ").append(stream_->security().version);
  return established_;
}

void DemoH2Session::read_some() {
  std::size_t budget = kTurnBytes;
  const net::ReadOutcome outcome = net::read_with_budget(
      loop_, *stream_, budget, [this] { return !closed_; }, [] { return SIZE_MAX; },
      [this](std::string_view bytes) LOOP_ONLY {
        return static_cast<bool>(session_.receive(bytes, loop_.now()));  // on a Fault, flush() sends GOAWAY and closes
      });
  if (outcome.end == net::ReadEnd::exhausted) loop_.defer(*this);
  if (outcome.end == net::ReadEnd::closed) closed_ = true;
}

void DemoH2Session::flush() {
  while (!closed_) {
    while (sent_ < out_.size()) {
      const iovec rest{out_.data() + sent_, out_.size() - sent_};
      const net::IoResult io = stream_->write({&rest, 1});
      if (io.io == net::Io::would_block) return;
      if (io.io != net::Io::ok) {
        closed_ = true;
        return;
      }
      sent_ += io.bytes;
    }
    out_.clear();
    sent_ = 0;
    if (!session_.wants_pull() || !session_.pull(out_, kPull, loop_.now())) break;
    if (out_.empty()) break;
  }
  if (!session_.over()) return;
  stream_->shut_write();
  closed_ = true;
}

http::H2StreamUser* DemoH2Session::on_request(http::H2Stream& stream, http::RequestHead& head) {
  ++requests_;
  return &calls_.emplace_back(*this, stream, head);
}

void DemoH2Session::on_refused_head(http::H2Stream& stream, FaultKind) {
  session_.reset(stream, http::H2Error::refused_stream);
}

void DemoH2Session::arm() {
  Instant deadline = loop_.now() + (calls_.empty() ? idle_timeout_ : kH2Stall);
  for (const Call& call : calls_) deadline = std::min(deadline, call.due());
  timer_.arm(deadline);
}

}  // namespace carpool::proxy
