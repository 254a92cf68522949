#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# redis-server 7.0.15 (Debian 12), and the Lua 5.1 that runs its scripts.
#
# A good guess: in a script, string.match(info, '\nrole:([^\r]*)') picks a line out of INFO's five kilobytes as fast as
# any other way. Its pattern begins with a newline and a word, so nearly every place is refused at its first byte.
#
# What happens: it takes seven to ten times as long as string.find() with `plain` true and string.sub(): 11 to 13
# microseconds for one line. The matcher is called anew for each byte of the text, and a plain find is one memchr() to
# the next newline. Ten lines cost a server more than 100 microseconds, in which it serves nobody else; INFO itself 10.
set -euo pipefail
folder=$(mktemp -d)
server=''
trap '[[ -z $server ]] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
version=5:7.0.15-1~deb12u10
apt-get -qq download "redis-tools=$version" "redis-server=$version" libjemalloc2 liblzf1 liblua5.1-0 lua-bitop \
  lua-cjson libhiredis0.14
for package in ./*.deb; do dpkg -x "$package" .; done
LD_LIBRARY_PATH=$(dirname "$(find "$PWD" -name 'libjemalloc.so.2')")
export LD_LIBRARY_PATH
usr/bin/redis-server --unixsocket "$folder/socket" --port 0 --save '' >log &
server=$!
until grep -q 'Ready to accept\|ready to accept' log; do sleep 0.1; done
ask() { usr/bin/redis-cli -s "$folder/socket" "$@"; }
usr/bin/redis-server --version

# microseconds of 2,700 lines, each picked by EXPRESSION
measure() {
  ask CONFIG RESETSTAT >/dev/null
  ask EVAL "local info, all = redis.call('INFO'), ''
    for turn = 1, 300 do
      for name in ('run_id master_replid role connected_slaves repl_backlog_active redis_mode maxmemory ' ..
          'maxmemory_policy evicted_keys'):gmatch('%S+') do
        local value = $1
        if turn == 1 then all = all .. value .. ' ' end
      end
    end
    return all" 0 >"$2"
  ask INFO commandstats | sed -nE 's/^cmdstat_eval:calls=1,usec=([0-9]+).*/\1/p'
}
matched=$(measure "string.match(info, '\n' .. name .. ':([^\r]*)')" by_match)
at="string.find(info, '\n' .. name .. ':', 1, true)"
found=$(measure "string.sub(info, $at + #name + 2, string.find(info, '\r', $at, true) - 1)" by_find)
echo "2,700 lines: $matched microseconds by a pattern, $found by plain finds, two for each line"
cmp by_match by_find
[[ $matched -gt $((4 * found)) ]] || { echo "not four times as slow any more" >&2; exit 1; }
