# SPDX-License-Identifier: MIT
#
# judge.awk: why did frames collide? Reads the logs of the gateways (gateway --log) and of the device (device --log),
# sorted by time:
#
#     cat gateway-*.log device.log | sort -s -n -k 2,2 | awk -f judge.awk -v need_ms=150 -v arrive_ms=50
#
# need_ms is what the gateways give to redlock_check(); arrive_ms is the part of it in which the frame is to arrive.
#
# A gateway that redlock_check() lets through holds the lock for need_ms from the check, or until it gives the lock
# back; and it held the lock between two such checks of one job. Two gateways at one time are TWO HOLDERS: the lock is
# broken. That does not depend on how busy the machine is.
#
# A frame that arrives later than arrive_ms after its check is a STALL: the machine did not let the gateway, or the
# device, run. A collision within silence_ms of a stalled frame is its consequence. No lock can prevent it; a token can.
#
# Any other collision is UNEXPLAINED: somebody sent without a check.
#
# Prints "two_holders N stalled N unexplained N": instants, collisions, collisions. Then a line for each, up to ten.
BEGIN { NS = 1000000; if (!silence_ms) silence_ms = 100 }

function tell(text) { if (told++ < 10) texts = texts text "\n" }
function at(ns) { return sprintf("%.1f ms", (ns - begin) / NS) }

!begin { begin = $2 }
{ g = $3; job = $4; frame = g " " job " " $5 }

$1 == "checked" {
  for (other in until) {
    if (other == g) continue
    if (until[other] > $2 || (work[g] == job && last[other] > last[g])) {
      ++two_holders
      tell(sprintf("two holders: gateway %s was let through at %s, in a job of gateway %s", g, at($2), other))
    }
  }
  work[g] = job
  checked[frame] = last[g] = $2
  until[g] = $2 + need_ms * NS
}
$1 == "written" { written[frame] = $2 }
$1 == "over" { if (until[g] > $2) until[g] = $2; work[g] = "none" }
$1 == "frame" && (frame in checked) {
  delay = $2 - checked[frame]
  if (delay > arrive_ms * NS) {
    late = $2
    # The gateway reads the clock after its write, so the device may have read the frame before that.
    write_ms = ((frame in written ? written[frame] : $2) - checked[frame]) / NS
    why = sprintf("a frame of gateway %s was written %.0f ms and read %.0f ms after its check", g, write_ms, delay / NS)
  }
}
$1 == "collision" {
  if (late && $2 - late <= silence_ms * NS) {
    ++stalled
    tell("stall: collision at " at($2) ": " why)
  } else {
    ++unexplained
    tell("unexplained: collision at " at($2) " of gateway " g)
  }
}
END {
  printf "two_holders %d stalled %d unexplained %d\n%s", two_holders, stalled, unexplained, texts
}
