#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# libuv 1.44.2 (Debian 12), and main() that returns while a worker of the thread pool is busy.
#
# A good guess: threads end with the process. A program that returns from main(), or calls exit(), is gone at once,
# whatever its workers do; POSIX says so of threads that nobody joins.
#
# What happens: libuv's shared object has a destructor, uv_library_shutdown, that joins the thread pool. exit() runs it,
# so the process stays until the longest piece of work under way is done. A uv_getaddrinfo() that nobody waits for any
# more, of a name whose server is silent, keeps a program for as long as the resolver asks. _exit() does not wait.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=1.44.2-1+deb12u1
apt-get -qq download "libuv1=$version" "libuv1-dev=$version"
for package in ./*.deb; do dpkg -x "$package" .; done
library=$(dirname "$(find . -name libuv.so.1)")

cat >late.c <<'C'
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

static uv_sem_t begun;

static void work(uv_work_t* request) {
  (void)request;
  uv_sem_post(&begun);
  sleep(3);
}

int main(int argc, char** argv) {
  static uv_work_t request;
  (void)argv;
  uv_sem_init(&begun, 0);
  uv_queue_work(uv_default_loop(), &request, work, NULL);
  uv_sem_wait(&begun);
  if (argc > 1) _exit(0);
  return 0;
}
C
cc -o late late.c -I usr/include "$library/libuv.so.1" -lpthread
export LD_LIBRARY_PATH=$PWD/$library

seconds() {
  local from=$SECONDS
  "$@"
  echo $((SECONDS - from))
}
by_return=$(seconds ./late)
by_exit=$(seconds ./late now)
echo "libuv $version: main() returns with 3 s of work under way: $by_return s; _exit(): $by_exit s"
[[ $by_return -ge 2 && $by_exit -lt 2 ]]
