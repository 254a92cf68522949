#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# libuv 1.44.2 (Debian 12), ThreadSanitizer of GCC 12.2.0, and two threads that share nothing.
#
# A good guess: a thread that has opened and closed a loop of its own, and another one that opens a socket afterwards,
# have nothing in common. ThreadSanitizer says nothing, or the report tells of a bug.
#
# What happens: ThreadSanitizer keeps a record for each number of a descriptor, to find a close() beside a use. It sees
# libuv call epoll_create1(), whose wrapper it replaces. libuv closes by syscall(SYS_close), which it does not see. The
# thread that gets the number next seems to create a descriptor that the first thread has created and still has open:
# "data race", with the two creations as the places. The first loop must end before the socket is opened, without a
# lock between the two threads, so a test shows it once in hundreds of runs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=1.44.2-1+deb12u1
apt-get -qq download "libuv1=$version" "libuv1-dev=$version"
for package in ./*.deb; do dpkg -x "$package" .; done
library=$(dirname "$(find . -name libuv.so.1)")

cat >numbers.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

static void *open_socket(void *unused) {
  (void)unused;
  usleep(300000); /* no lock: it would tell ThreadSanitizer that the loop is closed */
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  printf("the socket has number %d\n", fd);
  close(fd);
  return NULL;
}

int main(void) {
  pthread_t thread;
  uv_loop_t first, loop;
  uv_loop_init(&first); /* what libuv keeps for the process is open before */
  pthread_create(&thread, NULL, open_socket, NULL);
  uv_loop_init(&loop);
  printf("the loop has number %d\n", uv_backend_fd(&loop));
  uv_loop_close(&loop);
  pthread_join(thread, NULL);
  uv_loop_close(&first);
  return 0;
}
C
cc -g -fsanitize=thread -o numbers numbers.c -I usr/include "$library/libuv.so.1" -lpthread
status=0
LD_LIBRARY_PATH=$PWD/$library TSAN_OPTIONS=exitcode=66 setarch -R ./numbers >out 2>report || status=$?
cat out
grep -E 'WARNING: ThreadSanitizer|SUMMARY|#0 (socket|epoll_create1)' report || true
echo "libuv $version, $(cc --version | head -n 1): exit status $status"
[[ $status -eq 66 && $(grep -cE '#0 (socket|epoll_create1) ' report) -eq 2 ]]
