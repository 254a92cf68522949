// SPDX-License-Identifier: MIT
//
// with_masters [--untracked] N COMMAND...: starts N redis-servers of its own, runs the command and ends with its exit
// code; the servers end with it. {ports} in the command stands for their ports, with commas between; the command also
// finds them in MASTER_PORTS, and their processes in MASTER_PIDS. --untracked: their user may not ask for tracking, so
// with the guard each acquire is a script.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "support/redis_server.hpp"

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

int run(std::vector<std::string> words) {
  const pid_t pid = fork();
  if (pid < 0) return 1;
  if (pid == 0) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    perror(arguments[0]);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int with_masters(bool untracked, size_t n, char** words, int count) {
  redlock::test::RedisServer::Options options;
  if (untracked) options.args = {"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-client|tracking"};
  redlock::test::Cluster masters(n, options);
  std::string ports, pids;
  for (size_t m = 0; m < n; ++m) {
    ports += (m == 0 ? "" : ",") + std::to_string(masters[m].port());
    pids += (m == 0 ? "" : ",") + std::to_string(masters[m].pid());
  }
  setenv("MASTER_PORTS", ports.c_str(), 1);
  setenv("MASTER_PIDS", pids.c_str(), 1);
  std::vector<std::string> command;
  for (int i = 0; i < count; ++i) command.push_back(replaced(words[i], "{ports}", ports));
  return run(command);
}

}  // namespace

int main(int argc, char** argv) {
  const bool untracked = argc > 1 && std::string(argv[1]) == "--untracked";
  if (untracked) --argc, ++argv;
  const long n = argc > 2 ? strtol(argv[1], nullptr, 10) : 0;
  if (n < 1) {
    fprintf(stderr, "usage: with_masters [--untracked] N COMMAND...\n");
    return 2;
  }
  try {
    return with_masters(untracked, static_cast<size_t>(n), argv + 2, argc - 2);
  } catch (const std::exception& e) {
    fprintf(stderr, "with_masters: %s\n", e.what());
    return 1;
  }
}
