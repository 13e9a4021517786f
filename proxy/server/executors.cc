#include "proxy/server/executors.h"

#include <algorithm>

#include "exec/reserved_threads_size.h"
#include "proxy/telemetry/log.h"

namespace carpool::proxy {

namespace {
constexpr unsigned kConnectionHelpers =
    64;                                  // queued helpers of connections (execute_produce); further ones are rejected
constexpr unsigned kReserveSpins = 200;  // about a microsecond, within which a busy loop's next task often arrives

exec::ThreadPoolOptions pool_options(const config::Threads& settings, exec::FailureSink& failures) {
  exec::ThreadPoolOptions options;
  options.min = settings.min;
  options.max = settings.max;
  options.idle_timeout = settings.idle_timeout;
  options.max_evict_count = settings.max_evict_count;
  options.stack_size = settings.stack_size;
  options.failures = &failures;
  return options;
}

exec::ReserveOptions reserve_options(const config::Threads& settings, unsigned cores, exec::FailureSink& failures) {
  exec::ReserveOptions options;
  options.capacity = exec::reserve_size(settings.reserved, cores, settings.max);
  options.idle_timeout = settings.idle_timeout;
  options.spins = kReserveSpins;
  options.failures = &failures;
  return options;
}

exec::TaskExecutorOptions background_options(const config::Threads& settings, unsigned cores,
                                             exec::FailureSink& failures) {
  exec::TaskExecutorOptions options;
  options.max_tasks = settings.max_tasks;
  // Compression occupies a core and fsync a disk, so more concurrent tasks would not finish sooner.
  options.max_running = std::clamp(cores, 1U, std::min(settings.max, settings.max_tasks));
  options.name = "background";
  options.failures = &failures;
  return options;
}

exec::StrategyMode mode_of(config::Execution execution) {
  switch (execution) {
    case config::Execution::adaptive:
      return exec::StrategyMode::adaptive;
    case config::Execution::execute_produce:
      return exec::StrategyMode::execute_produce_consume;
    case config::Execution::produce_execute:
      return exec::StrategyMode::produce_execute_consume;
    case config::Execution::produce:
      break;
  }
  return exec::StrategyMode::produce_consume;
}

const char* name_of(config::Execution execution) {
  constexpr const char* kNames[] = {"adaptive", "execute_produce", "produce_execute", "produce"};
  return kNames[static_cast<std::size_t>(execution)];
}

const char* name_of(exec::ThreadInfo::State state) {
  switch (state) {
    case exec::ThreadInfo::State::starting:
      return "starting";
    case exec::ThreadInfo::State::idle:
      return "idle";
    case exec::ThreadInfo::State::busy:
      return "busy";
    case exec::ThreadInfo::State::leased:
      break;
  }
  return "leased";
}
}  // namespace

// A loop may queue every task that may exist, plus one helper per loop (execute_produce).
Executors::Executors(const config::Threads& settings, unsigned loops, unsigned cores)
    : settings_(settings),
      tasks_(settings.max_tasks),
      pool_(pool_options(settings, *this)),
      loops_(pool_.lease(loops)),
      from_loops_(pool_, "loops", settings.max_tasks + loops),
      from_connections_(pool_, "connections", settings.max_tasks + kConnectionHelpers),
      reserve_(pool_, reserve_options(settings, cores, *this)),
      background_(pool_, background_options(settings, cores, *this)) {}

Executors::~Executors() = default;

Status Executors::start() {
  return pool_.start();
}

bool Executors::stop(Duration timeout) {
  {
    const Held lock(mutex_);
    drivers_.clear();
  }
  reserve_.stop();
  background_.stop();
  if (pool_.stop(timeout)) return true;
  for (const exec::ThreadInfo& thread : pool_.dump()) {
    log::error(
        "exec", "a task does not end",
        {{"doing", thread.activity}, {"seconds", std::chrono::duration<double>(Clock::now() - thread.since).count()}});
  }
  return false;
}

std::unique_ptr<exec::Driver> Executors::make_driver(exec::UvLoop& loop, exec::TurnHost& host, const char* name) {
  auto driver =
      std::make_unique<exec::Driver>(exec::DriverParts{.loop = loop,
                                                       .host = host,
                                                       .name = name,
                                                       .mode = mode_of(settings_.strategy),
                                                       .pool = pool_,
                                                       .executor = from_loops_,
                                                       .helpers = reserve_.capacity() == 0 ? nullptr : &reserve_,
                                                       .tasks = tasks_,
                                                       .failures = this});
  const Held lock(mutex_);
  drivers_.push_back(driver.get());
  return driver;
}

exec::StrategyParts Executors::connection_strategy() {
  return {.mode = mode_of(settings_.strategy),
          .executor = from_connections_,
          .helpers = reserve_.capacity() == 0 ? nullptr : &reserve_,
          .tasks = tasks_,
          .failures = this};
}

void Executors::add_strategy(const exec::Strategy& strategy) {
  const Held lock(mutex_);
  nested_.push_back(&strategy);
}

void Executors::remove_strategy(const exec::Strategy& strategy) {
  const Held lock(mutex_);
  std::erase(nested_, &strategy);
  left_ += strategy.counts();
}

bool Executors::execute(exec::TaskPtr task) {
  return tasks_.admit(*task) && background_.execute(std::move(task));
}

void Executors::on_task_failed(const char* task, const char* why) noexcept {
  log::error("exec", "a task failed", {{"task", task}, {"why", why}});
}

exec::StrategyCounts Executors::strategies() const {
  exec::StrategyCounts counts;
  const Held lock(mutex_);
  for (const exec::Driver* driver : drivers_) counts += driver->counts();
  for (const exec::Strategy* strategy : nested_) counts += strategy->counts();
  counts += left_;
  return counts;
}

metrics::ExecSample Executors::sample() const {
  const exec::StrategyCounts counts = strategies();
  const exec::ThreadCounts threads = pool_.counts();
  const exec::TaskExecutorCounts background = background_.counts();
  const unsigned reserved = reserve_.available();
  metrics::ExecSample sample;
  sample.tasks = {{"pc", counts.pc}, {"pic", counts.pic}, {"pec", counts.pec}, {"epc", counts.epc}};
  sample.handovers = {{"took_over", counts.took_over}, {"noop", counts.noop}, {"missed", counts.missed}};
  sample.handovers_paused = counts.paused;
  sample.threads = {{"idle", threads.idle},
                    {"busy", threads.busy},
                    {"reserved", reserved},
                    {"leased", threads.leased > reserved ? threads.leased - reserved : 0},
                    {"starting", threads.starting}};
  sample.threads_max = threads.max;
  sample.low_on_threads = threads.low_on_threads;
  sample.queue = threads.queue + background.queued;
  sample.queue_wait = pool_.queue_wait();
  sample.queue_wait += background_.queue_wait();
  sample.refused = tasks_.refused();
  return sample;
}

admin::ThreadsInfo Executors::info() const {
  const Instant now = Clock::now();
  const exec::ThreadCounts threads = pool_.counts();
  const exec::TaskExecutorCounts background = background_.counts();
  admin::ThreadsInfo shown;
  shown.strategy = name_of(settings_.strategy);
  shown.min = settings_.min;
  shown.max = threads.max;
  shown.leases = threads.leases;
  shown.reserve = {reserve_.capacity(), reserve_.available(), reserve_.pending()};
  shown.tasks = {tasks_.limit(), tasks_.existing(), tasks_.refused()};
  shown.queue = threads.queue;
  shown.queue_limit = threads.queue_limit;
  const exec::TaskSource& runners = background_.source();
  shown.sources = {
      {from_loops_.name(), from_loops_.limit(), from_loops_.queued(), from_loops_.refused()},
      {from_connections_.name(), from_connections_.limit(), from_connections_.queued(), from_connections_.refused()},
      {runners.name(), runners.limit(), runners.queued(), runners.refused()}};
  shown.background = {background.queued, background.running, background.max_running, background.executed};
  shown.started = threads.started;
  shown.left = threads.evicted;
  shown.start_failures = threads.start_failures;
  shown.failed = threads.failed_jobs;
  for (const exec::ThreadInfo& thread : pool_.dump()) {
    shown.threads.push_back({thread.number, name_of(thread.state), thread.activity, now - thread.since});
  }
  for (const exec::TaskInfo& task : background_.dump()) {
    shown.background_tasks.push_back({task.name, task.running, now - task.since});
  }
  return shown;
}

}  // namespace carpool::proxy
