#include "mpi/world.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <mpi.h>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "flyover/base/error.hpp"
#include "mpi/messages.hpp"

namespace flyover::mpi {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int leader = 0;
constexpr std::size_t largest_message = 256;  // In results.

struct Message {
  int from = 0;
  Tag tag = Tag::Bye;
  Bytes bytes;
};

// The next message if one is there. MPI's own way to wait takes a whole core, which evaluates
// points better.
std::optional<Message> receive() {
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Message message{status.MPI_SOURCE, static_cast<Tag>(status.MPI_TAG),
                  Bytes(static_cast<std::size_t>(size))};
  MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.from, status.MPI_TAG, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return message;
}

// From a worker, which may wait: the leader always comes back to receiving.
void send_to_leader(Tag tag, const Bytes& bytes) {
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, leader, static_cast<int>(tag),
           MPI_COMM_WORLD);
}

// From the leader, which must not wait for a worker that waits for it.
class Outgoing {
 public:
  void send(int to, Tag tag, Bytes bytes) {
    Sending& sending = sendings_.emplace_back(Sending{std::move(bytes), MPI_REQUEST_NULL});
    MPI_Isend(sending.bytes.data(), static_cast<int>(sending.bytes.size()), MPI_BYTE, to,
              static_cast<int>(tag), MPI_COMM_WORLD, &sending.request);
  }
  bool all_sent() {
    sendings_.remove_if([](Sending& sending) {
      int done = 0;
      MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    return sendings_.empty();
  }

 private:
  struct Sending {
    Bytes bytes;
    MPI_Request request;
  };
  std::list<Sending> sendings_;  // Whose addresses MPI has.
};

// Sleeps between looks for messages: shortly after one came, longer when none does.
class Patience {
 public:
  void rest() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min<microseconds>(pause_ * 2, milliseconds(1));
  }
  void reset() { pause_ = microseconds(20); }

 private:
  microseconds pause_{20};
};

// For a worker. Its threads may be far from the end of a point, and nobody wants the result.
[[noreturn]] void end_at_once() {
  MPI_Finalize();
  std::_Exit(0);
}

}  // namespace

struct World::Impl {
  int rank = 0;
  int size = 1;
  int neighbours = 1;  // Processes on this machine, this one included.
  bool with_mpi = false;
  Outgoing outgoing;     // Of the leader.
  bool stopped = false;  // The leader: has told the others to end. They: have been told.

  // For the leader.
  void stop(bool all_is_done) {
    if (stopped) return;
    stopped = true;
    for (int to = 1; to < size; ++to) outgoing.send(to, Tag::Stop, pack(all_is_done ? 1U : 0U));
    // They may still be sending what nobody waits for.
    Patience patience;
    for (int left = size - 1; left > 0 || !outgoing.all_sent();) {
      if (const std::optional<Message> message = receive()) {
        if (message->tag == Tag::Bye) --left;
        patience.reset();
      } else {
        patience.rest();
      }
    }
  }
};

namespace {

struct Worker {
  bool greeted = false;
  std::uint64_t wants = 0;
  std::uint64_t has = 0;  // Points that it has been given and not yet returned.
};

// Shares points out among the leader's own threads and the other processes.
class MpiRunner : public PointRunner {
 public:
  MpiRunner(Outgoing& outgoing, std::function<void(bool)> stop, int size, const SweepPoints& points,
            MakeEvaluator make, std::uint32_t threads, std::string digest)
      : outgoing_(outgoing),
        stop_(std::move(stop)),
        local_(points, std::move(make), threads),
        workers_(static_cast<std::size_t>(size)),
        digest_(std::move(digest)) {
    workers_[leader].greeted = true;
  }

  ~MpiRunner() override { stop_(!broken_); }
  MpiRunner(const MpiRunner&) = delete;
  MpiRunner& operator=(const MpiRunner&) = delete;

  void run(const NextPoints& next, const ResultSink& sink) override {
    std::mutex taking;
    std::mutex giving;
    bool exhausted = false;
    bool ending = false;  // Early.
    const NextPoints take = [&](std::size_t most) {
      const std::lock_guard lock(taking);
      PointBatch batch;
      if (exhausted || ending) return batch;
      batch = next(most);
      exhausted = batch.numbers.empty();
      return batch;
    };
    const ResultSink give = [&](const PointResult& result) {
      const std::lock_guard lock(giving);
      sink(result);
    };

    bool local_done = false;
    std::exception_ptr error;
    std::thread local([&] {
      std::exception_ptr local_error;
      try {
        local_.run(take, give);
      } catch (...) {
        local_error = std::current_exception();
      }
      const std::lock_guard lock(taking);
      local_done = true;
      if (!error) error = local_error;
    });
    const auto is_over = [&] {
      const std::lock_guard lock(taking);
      if (error) return true;
      // Not before everybody has come, so that an error of a late one does not get lost.
      return local_done && exhausted && std::ranges::all_of(workers_, [](const Worker& worker) {
               return worker.greeted && worker.has == 0;
             });
    };
    try {
      Patience patience;
      while (!is_over()) {
        bool idle = true;
        while (const std::optional<Message> message = receive()) {
          idle = false;
          handle(*message, give);
        }
        hand_out(take);
        outgoing_.all_sent();
        if (idle) {
          patience.rest();
        } else {
          patience.reset();
        }
      }
    } catch (...) {
      const std::lock_guard lock(taking);
      ending = true;
      if (!error) error = std::current_exception();
    }
    local.join();
    if (error) {
      broken_ = true;
      std::rethrow_exception(error);
    }
  }

 private:
  void handle(const Message& message, const ResultSink& give) {
    Worker& worker = workers_[static_cast<std::size_t>(message.from)];
    switch (message.tag) {
      case Tag::Hello:
        if (unpack_text(message.bytes) != digest_) {
          throw InputError(fmt::format(
              "rank {} reads other files than rank 0, or another program: start all of them with "
              "the same ones, on a file system that they share",
              message.from));
        }
        worker.greeted = true;
        break;
      case Tag::Want:
        worker.wants = unpack_number(message.bytes);
        break;
      case Tag::Results:
        for (const PointResult& result : unpack_results(message.bytes)) {
          give(result);
          --worker.has;
        }
        break;
      case Tag::Error:
        rethrow(message.bytes, fmt::format("rank {}: ", message.from));
      case Tag::Points:
      case Tag::Stop:
      case Tag::Bye:
        require(false, "workers do not lead, nor leave");
    }
  }

  void hand_out(const NextPoints& take) {
    for (std::size_t to = 1; to < workers_.size(); ++to) {
      Worker& worker = workers_[to];
      if (worker.wants == 0) continue;
      const PointBatch batch = take(worker.wants);
      if (batch.numbers.empty()) return;
      worker.wants = 0;
      worker.has += batch.numbers.size();
      outgoing_.send(static_cast<int>(to), Tag::Points, pack(batch));
    }
  }

  Outgoing& outgoing_;
  std::function<void(bool)> stop_;
  ThreadRunner local_;
  std::vector<Worker> workers_;  // By rank; the first is the leader, who needs no messages.
  std::string digest_;
  bool broken_ = false;
};

// What a worker's main thread, which alone talks to the leader, shares with those that evaluate.
class Desk {
 public:
  // For those that evaluate.
  PointBatch take(std::size_t most) {
    std::unique_lock lock(mutex_);
    points_came_.wait(lock, [&] { return !queue_.empty() || closed_; });
    PointBatch batch;
    if (closed_) return batch;
    PointBatch& first = queue_.front();
    batch.fidelity = first.fidelity;
    const std::size_t count = std::min(most, first.numbers.size());
    const auto end = first.numbers.begin() + static_cast<std::ptrdiff_t>(count);
    batch.numbers.assign(first.numbers.begin(), end);
    first.numbers.erase(first.numbers.begin(), end);
    if (first.numbers.empty()) queue_.pop_front();
    queued_ -= count;
    something_to_say_.notify_one();
    return batch;
  }
  void give(const PointResult& result) {
    const std::lock_guard lock(mutex_);
    results_.push_back(result);
    if (results_.size() >= largest_message) something_to_say_.notify_one();
  }

  // No more points: the leader has said so, or an evaluation failed.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    points_came_.notify_all();
    something_to_say_.notify_one();
  }
  void note(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    something_to_say_.notify_one();
  }

  // For the main thread.
  void put(PointBatch batch) {
    const std::lock_guard lock(mutex_);
    queued_ += batch.numbers.size();
    queue_.push_back(std::move(batch));
    points_came_.notify_all();
  }
  struct News {
    std::vector<PointResult> results;
    bool few_points = false;
    std::exception_ptr error;
  };
  // Waits until there is something to say, but no longer than until it is time to listen.
  News wait(bool may_ask, std::size_t few) {
    std::unique_lock lock(mutex_);
    something_to_say_.wait_for(lock, milliseconds(1), [&] {
      return results_.size() >= largest_message || (may_ask && queued_ <= few) || error_;
    });
    return {std::exchange(results_, {}), may_ask && queued_ <= few, error_};
  }

 private:
  std::mutex mutex_;
  std::condition_variable points_came_;
  std::condition_variable something_to_say_;
  std::deque<PointBatch> queue_;
  std::size_t queued_ = 0;
  std::vector<PointResult> results_;
  bool closed_ = false;
  std::exception_ptr error_;
};

[[noreturn]] void wait_for_the_end() {
  Patience patience;
  while (true) {
    const std::optional<Message> message = receive();
    if (message && message->tag == Tag::Stop) break;
    if (!message) patience.rest();
  }
  send_to_leader(Tag::Bye, {});
  end_at_once();
}

}  // namespace

World::World() : impl_(std::make_unique<Impl>()) {
  if (!has_launcher()) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  impl_->with_mpi = true;
  require(provided >= MPI_THREAD_FUNNELED, "an MPI library that bears threads");
  MPI_Comm_rank(MPI_COMM_WORLD, &impl_->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &impl_->size);
  MPI_Comm machine = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, impl_->rank, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &impl_->neighbours);
  MPI_Comm_free(&machine);
}

World::~World() {
  if (!impl_->with_mpi) return;
  if (leads()) {
    impl_->stop(false);
  } else if (!impl_->stopped) {
    wait_for_the_end();
  }
  MPI_Finalize();
}

int World::rank() const {
  return impl_->rank;
}
int World::size() const {
  return impl_->size;
}

std::uint32_t World::threads(std::uint32_t jobs) const {
  if (jobs > 0) return jobs;
  // A launcher that binds processes to cores leaves each of them fewer than the machine has, all
  // its own. One that does not leaves all of them the same.
  const auto usable = std::max(std::thread::hardware_concurrency(), 1U);
  const auto online = static_cast<std::uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (usable < online) return usable;
  return std::max(usable / static_cast<std::uint32_t>(impl_->neighbours), 1U);
}

std::unique_ptr<PointRunner> World::runner(const SweepPoints& points, MakeEvaluator make,
                                           std::uint32_t threads, const std::string& digest) {
  require(leads(), "World: only the leader hands out points");
  if (size() == 1) return std::make_unique<ThreadRunner>(points, std::move(make), threads);
  return std::make_unique<MpiRunner>(
      impl_->outgoing, [this](bool all_is_done) { impl_->stop(all_is_done); }, size(), points,
      std::move(make), threads, digest);
}

void World::work(const SweepPoints& points, MakeEvaluator make, std::uint32_t threads,
                 const std::string& digest) {
  require(!leads(), "World: the leader does not work for itself");
  send_to_leader(Tag::Hello, pack(digest));
  Desk desk;
  ThreadRunner runner(points, std::move(make), threads, [&] { desk.close(); });
  std::thread evaluators([&] {
    try {
      runner.run([&](std::size_t most) { return desk.take(most); },
                 [&](const PointResult& result) { desk.give(result); });
    } catch (...) {
      desk.note(std::current_exception());
    }
  });

  ChunkSize chunk(2 * std::size_t{threads}, 1024 * std::size_t{threads});
  std::size_t few = 0;  // So few points are left that it is time to ask for more.
  bool asked = false;
  Clock::time_point last = Clock::now();
  while (true) {
    const Desk::News news = desk.wait(!asked, few);
    if (!news.results.empty()) send_to_leader(Tag::Results, pack(news.results));
    if (news.error) {
      send_to_leader(Tag::Error, pack(news.error));
      evaluators.join();
      wait_for_the_end();
    }
    if (news.few_points) {
      send_to_leader(Tag::Want, pack(std::uint64_t{chunk.now()}));
      asked = true;
    }
    while (std::optional<Message> message = receive()) {
      if (message->tag == Tag::Stop) {
        send_to_leader(Tag::Bye, {});
        impl_->stopped = true;
        if (unpack_number(message->bytes) == 0) end_at_once();
        desk.close();
        evaluators.join();
        return;
      }
      require(message->tag == Tag::Points, "the leader sends points, or stops");
      PointBatch batch = unpack_batch(message->bytes);
      const Clock::time_point now = Clock::now();
      chunk.took(batch.numbers.size(), now - last);
      last = now;
      few = batch.numbers.size() / 2;
      asked = false;
      desk.put(std::move(batch));
    }
  }
}

void World::together(const std::function<void()>& body) {
  if (leads()) {
    body();
    return;
  }
  try {
    body();
  } catch (...) {
    send_to_leader(Tag::Error, pack(std::current_exception()));
    wait_for_the_end();
  }
}

}  // namespace flyover::mpi
