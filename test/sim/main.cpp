// SPDX-License-Identifier: MIT
//
// redlock_sim: runs worlds by seed. The same seed is the same history, to the byte.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "world.hpp"

namespace {

using namespace redlock::sim;

struct Arguments {
  uint64_t first = 1;
  uint64_t count = 1000;
  unsigned jobs = 1;
  bool trace = false;
  Worlds worlds = Worlds::swarm;
  bool quiet = false;
  World::Judge judge = World::Judge::witness;
};

volatile uint64_t seed_now = 0;
volatile Worlds worlds_now = Worlds::swarm;
volatile bool proof_now = false;

const char usage_text[] =
    "usage: redlock_sim [--first-seed N] [--seeds M] [--jobs J] [--no-swarm|--clocks|--moves] [--proof]\n"
    "                   [--no-progress]\n"
    "       redlock_sim --seed N [--trace] [--no-swarm|--clocks|--moves] [--proof]\n"
    "--no-swarm: all classes of faults in each seed. --clocks: masters' wall clocks are stepped. --moves: the site\n"
    "gets another set of masters, while clients of both run.\n"
    "--proof: what happens is judged as a run of test/nightly/proof, too, where the proof speaks of the world.\n"
    "Exit: 0 clean, 1 a violation (its seed and story are printed), 2 usage.\n";

const char* option_of(Worlds worlds) {
  switch (worlds) {
    case Worlds::swarm:
      return "";
    case Worlds::every_fault:
      return " --no-swarm";
    case Worlds::clocks:
      return " --clocks";
    case Worlds::moves:
      return " --moves";
  }
  return "";
}

// An assert of the library has trapped.
void on_trap(int signal) {
  char text[160];
  const auto seed = static_cast<unsigned long long>(seed_now);
  const int n = snprintf(
      text, sizeof text,
      "\nVIOLATION in seed %llu: signal %d (an assert of the library?)\nreplay: redlock_sim --seed %llu%s%s --trace\n",
      seed, signal, seed, option_of(worlds_now), proof_now ? " --proof" : "");
  fflush(stdout);
  if (write(STDOUT_FILENO, text, static_cast<size_t>(n)) < 0) _exit(3);
  _exit(1);
}

void catch_traps() {
  for (const int signal : {SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) ::signal(signal, on_trap);
}

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void tell_violation(uint64_t seed, Worlds worlds, World::Judge judge) {
  Story story(Telling::collect);
  World world(seed, worlds, story, judge);
  world.run();
  const Violation& v = world.violation();
  printf("\nVIOLATION in seed %llu at %.6f s: %s\n", static_cast<unsigned long long>(seed),
         static_cast<double>(v.at) / 1e9, v.text.c_str());
  story.print_end(v.since - 20 * ms, v.clients, 90);
  printf("replay: redlock_sim --seed %llu%s%s --trace\n", static_cast<unsigned long long>(seed), option_of(worlds),
         proof_now ? " --proof" : "");
  fflush(stdout);
}

// True when the seed is clean.
bool run_seed(uint64_t seed, Worlds worlds, World::Judge judge, bool twice, Totals& totals) {
  seed_now = seed;
  Story story(Telling::hash_only);
  World world(seed, worlds, story, judge);
  world.run();
  totals.add(world.totals);
  if (world.violation().found) {
    tell_violation(seed, worlds, judge);
    return false;
  }
  if (!twice) return true;
  Story again(Telling::hash_only);
  World second_world(seed, worlds, again);
  second_world.run();
  if (again.hash() == story.hash()) return true;
  printf("\nVIOLATION in seed %llu: two runs differ\nreplay: redlock_sim --seed %llu%s\n",
         static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed), option_of(worlds));
  return false;
}

// ---- many ----------------------------------------------------------------------------------------------------

struct Report {
  Totals totals;
  uint64_t seed;
  bool clean;
  bool last;
};

int run_job(const Arguments& args, unsigned job, int out) {
  Report report = {};
  double told_at = seconds_now();
  report.clean = true;
  for (uint64_t i = job; i < args.count && report.clean; i += args.jobs) {
    report.seed = args.first + i;
    report.clean = run_seed(report.seed, args.worlds, args.judge, report.seed % 100 == 0, report.totals);
    if (seconds_now() - told_at < 1 && report.clean) continue;
    told_at = seconds_now();
    if (write(out, &report, sizeof report) != sizeof report) return 1;
  }
  report.last = true;
  if (write(out, &report, sizeof report) != sizeof report) return 1;
  return report.clean ? 0 : 1;
}

void print_progress(const Totals& t, double seconds, const char* end) {
  uint64_t faults = 0;
  for (const uint64_t n : t.faults) faults += n;
  fprintf(stderr, "%llu seeds, %.0f/s, %.2f simulated hours, %llu faults, %llu grants%s",
          static_cast<unsigned long long>(t.seeds), static_cast<double>(t.seeds) / (seconds > 0 ? seconds : 1),
          static_cast<double>(t.simulated_ms) / 3.6e6, static_cast<unsigned long long>(faults),
          static_cast<unsigned long long>(t.grants), end);
}

void print_summary(const Totals& t, double seconds) {
  using ull = unsigned long long;
  printf(
      "%llu seeds in %.1f s (%.0f/s), %.2f simulated hours, %llu events, %llu grants, %llu lost early; "
      "exclusion demanded in %llu\n",
      ull(t.seeds), seconds, static_cast<double>(t.seeds) / seconds, static_cast<double>(t.simulated_ms) / 3.6e6,
      ull(t.events), ull(t.grants), ull(t.lost_early), ull(t.exclusive));
  printf(
      "high-water marks: debts %llu, claims %llu, rounds of one acquire %llu, bytes unsent %llu; quiet phase: longest "
      "without a holder %llu ms, longest ghost %llu ms\nfaults:",
      ull(t.debts_max), ull(t.claims_max), ull(t.rounds_max), ull(t.in_flight_max), ull(t.gap_max_ms),
      ull(t.orphan_max_ms));
  for (unsigned i = 0; i < fault_count; ++i) printf(" %s %llu", fault_name(Fault(i)), ull(t.faults[i]));
  if (t.moves != 0) {
    printf("\nchanges of masters that succeeded: %llu; clients that followed one: %llu", ull(t.moves), ull(t.follows));
  }
  printf("\n");
  if (t.proof_runs == 0) return;
  uint64_t steps = 0;
  for (const uint64_t n : t.taken) steps += n;
  printf("runs of the proof: %llu, not of the proof: %llu; %llu steps:", ull(t.proof_runs), ull(t.seeds - t.proof_runs),
         ull(steps));
  for (unsigned i = 0; i < proof_steps; ++i) {
    printf("%s %s %llu", i > 0 ? "," : "", proof_step_name(i), ull(t.taken[i]));
  }
  printf("\n");
}

int run_many(const Arguments& args) {
  struct Job {
    pid_t pid;
    int in;
    Report report;
    bool open;
  };
  std::vector<Job> jobs(args.jobs);
  for (unsigned j = 0; j < args.jobs; ++j) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      close(ends[0]);
      catch_traps();
      const int status = run_job(args, j, ends[1]);
      fflush(stdout);
      _exit(status);
    }
    close(ends[1]);
    jobs[j] = {pid, ends[0], {}, true};
  }
  const double began = seconds_now();
  bool clean = true;
  for (unsigned open = args.jobs; open > 0;) {
    std::vector<pollfd> waits;
    for (const Job& job : jobs) waits.push_back({job.open ? job.in : -1, POLLIN, 0});
    poll(waits.data(), waits.size(), -1);
    for (unsigned j = 0; j < args.jobs; ++j) {
      Job& job = jobs[j];
      if (!job.open || waits[j].revents == 0) continue;
      const bool ended = read(job.in, &job.report, sizeof job.report) != sizeof job.report || job.report.last;
      if (!ended) continue;
      job.open = false;
      --open;
      int status = 0;
      waitpid(job.pid, &status, 0);
      if (status == 0) continue;
      clean = false;
      for (const Job& other : jobs) {
        if (other.open) kill(other.pid, SIGTERM);
      }
    }
    Totals totals;
    for (const Job& job : jobs) totals.add(job.report.totals);
    if (!args.quiet && clean) print_progress(totals, seconds_now() - began, isatty(STDERR_FILENO) ? "   \r" : "\n");
  }
  Totals totals;
  for (const Job& job : jobs) totals.add(job.report.totals);
  if (clean) print_summary(totals, seconds_now() - began);
  return clean ? 0 : 1;
}

bool parse(int argc, char** argv, Arguments& args, bool& one) {
  one = false;
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    if (strcmp(name, "--trace") == 0) {
      args.trace = true;
    } else if (strcmp(name, "--no-swarm") == 0) {
      args.worlds = Worlds::every_fault;
    } else if (strcmp(name, "--clocks") == 0) {
      args.worlds = Worlds::clocks;
    } else if (strcmp(name, "--moves") == 0) {
      args.worlds = Worlds::moves;
    } else if (strcmp(name, "--proof") == 0) {
      args.judge = World::Judge::proof_too;
    } else if (strcmp(name, "--no-progress") == 0) {
      args.quiet = true;
    } else {
      if (i + 1 == argc) return false;
      char* end = nullptr;
      const uint64_t value = strtoull(argv[++i], &end, 10);
      if (end == argv[i] || *end != '\0') return false;
      if (strcmp(name, "--seed") == 0) {
        args.first = value, args.count = 1, one = true;
      } else if (strcmp(name, "--first-seed") == 0) {
        args.first = value;
      } else if (strcmp(name, "--seeds") == 0) {
        args.count = value;
      } else if (strcmp(name, "--jobs") == 0 && value >= 1 && value <= 64) {
        args.jobs = static_cast<unsigned>(value);
      } else {
        return false;
      }
    }
  }
  return !args.trace || one;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments args;
  bool one = false;
  if (!parse(argc, argv, args, one)) {
    fputs(usage_text, stderr);
    return 2;
  }
  worlds_now = args.worlds;
  proof_now = args.judge == World::Judge::proof_too;
  catch_traps();
  if (!one) return run_many(args);
  seed_now = args.first;
  if (args.trace) {
    Story story(Telling::print);
    World world(args.first, args.worlds, story, args.judge);
    world.run();
    printf("trace hash %016llx\n", static_cast<unsigned long long>(story.hash()));
    return world.violation().found ? 1 : 0;
  }
  Totals totals;
  const bool clean = run_seed(args.first, args.worlds, args.judge, true, totals);
  if (clean) printf("seed %llu: clean\n", static_cast<unsigned long long>(args.first));
  return clean ? 0 : 1;
}
