/* SPDX-License-Identifier: MIT
 *
 * Where each field of the C API's structs lies: firmware that was built against an older header goes on using these
 * numbers. Every processor and every width of time_t must agree with this table at compile time.
 *
 * Structs grow at their end only. After adding a field: one FIELD line for it, and the new END. Nothing else may change
 * once a release has shipped it.
 *
 *   FIELD(struct, field, offset where pointers have 64 bits, offset where they have 32)
 *   END(struct, last field, size where pointers have 64 bits, size where they have 32)
 */
#include <redlock/site.h>
#include <time.h>

#if UINTPTR_MAX > 0xFFFFFFFFu
#define HERE(on64, on32) (on64)
#else
#define HERE(on64, on32) (on32)
#endif

#define FIELD(type, field, on64, on32) \
  _Static_assert(offsetof(type, field) == HERE(on64, on32), #type "." #field " is not where the table says");
/* Behind the last field there is padding at most: who appends a field has to name it here. */
#define END(type, last, on64, on32)                                                                           \
  _Static_assert(sizeof(type) == HERE(on64, on32), #type " has another size: see the head of this file");     \
  _Static_assert(sizeof(type) - offsetof(type, last) - sizeof(((type *)0)->last) < 8, #type ": not its last field");

FIELD(redlock_lock_t, id, 0, 0)
END(redlock_lock_t, id, 8, 8)

FIELD(redlock_resource_t, data, 0, 0)
FIELD(redlock_resource_t, size, 8, 4)
END(redlock_resource_t, size, 16, 8)

FIELD(redlock_event_t, size, 0, 0)
FIELD(redlock_event_t, type, 4, 4)
FIELD(redlock_event_t, err, 8, 8)
FIELD(redlock_event_t, master_err, 12, 12)
FIELD(redlock_event_t, lock, 16, 16)
FIELD(redlock_event_t, validity_ms, 24, 24)
FIELD(redlock_event_t, granted, 32, 32)
FIELD(redlock_event_t, refused, 36, 36)
FIELD(redlock_event_t, failed, 40, 40)
FIELD(redlock_event_t, master, 44, 44)
FIELD(redlock_event_t, state, 48, 48)
FIELD(redlock_event_t, rounds, 52, 52)
FIELD(redlock_event_t, guard_ms, 56, 56)
FIELD(redlock_event_t, token, 64, 64)
FIELD(redlock_event_t, flags, 72, 72)
FIELD(redlock_event_t, cause, 76, 76)
FIELD(redlock_event_t, detail, 80, 80)
END(redlock_event_t, detail, 88, 88)

FIELD(redlock_detail_t, size, 0, 0)
FIELD(redlock_detail_t, masters, 4, 4)
FIELD(redlock_detail_t, quorum, 8, 8)
FIELD(redlock_detail_t, voting, 12, 12)
FIELD(redlock_detail_t, watched, 16, 16)
FIELD(redlock_detail_t, max_ttl_ms, 20, 20)
FIELD(redlock_detail_t, their_masters, 24, 24)
FIELD(redlock_detail_t, their_max_ttl_ms, 28, 28)
FIELD(redlock_detail_t, to_go_ms, 32, 32)
FIELD(redlock_detail_t, name, 40, 40)
FIELD(redlock_detail_t, address, 48, 44)
FIELD(redlock_detail_t, holder, 56, 48)
FIELD(redlock_detail_t, their_name, 64, 52)
FIELD(redlock_detail_t, our_name, 72, 56)
FIELD(redlock_detail_t, denied, 80, 60)
END(redlock_detail_t, denied, 88, 64)

FIELD(redlock_report_t, size, 0, 0)
FIELD(redlock_report_t, err, 4, 4)
FIELD(redlock_report_t, cause, 8, 8)
FIELD(redlock_report_t, master_err, 12, 12)
FIELD(redlock_report_t, granted, 16, 16)
FIELD(redlock_report_t, refused, 20, 20)
FIELD(redlock_report_t, failed, 24, 24)
FIELD(redlock_report_t, rounds, 28, 28)
FIELD(redlock_report_t, guard_ms, 32, 32)
FIELD(redlock_report_t, holder, 40, 40)
FIELD(redlock_report_t, text, 105, 105)
END(redlock_report_t, text, 368, 368)

FIELD(redlock_acquire_opts_t, size, 0, 0)
FIELD(redlock_acquire_opts_t, flags, 4, 4)
FIELD(redlock_acquire_opts_t, ttl_ms, 8, 8)
FIELD(redlock_acquire_opts_t, wait_ms, 12, 12)
FIELD(redlock_acquire_opts_t, min_validity_ms, 16, 16)
FIELD(redlock_acquire_opts_t, max_hold_ms, 20, 20)
FIELD(redlock_acquire_opts_t, retry_delay_ms, 24, 24)
FIELD(redlock_acquire_opts_t, reserved, 28, 28)
FIELD(redlock_acquire_opts_t, callback, 32, 32)
FIELD(redlock_acquire_opts_t, user, 40, 36)
FIELD(redlock_acquire_opts_t, report, 48, 40)
END(redlock_acquire_opts_t, report, 56, 44)

FIELD(redlock_times_t, count, 0, 0)
FIELD(redlock_times_t, sum_ms, 8, 8)
FIELD(redlock_times_t, max_ms, 16, 16)
FIELD(redlock_times_t, buckets, 24, 24)
END(redlock_times_t, buckets, 56, 56)

FIELD(redlock_status_t, size, 0, 0)
FIELD(redlock_status_t, masters, 4, 4)
FIELD(redlock_status_t, masters_up, 8, 8)
FIELD(redlock_status_t, quorum, 12, 12)
FIELD(redlock_status_t, locks_held, 16, 16)
FIELD(redlock_status_t, locks_pending, 20, 20)
FIELD(redlock_status_t, locks_max, 24, 24)
FIELD(redlock_status_t, debts, 28, 28)
FIELD(redlock_status_t, debts_max, 32, 32)
FIELD(redlock_status_t, even, 36, 36)
FIELD(redlock_status_t, acquired, 40, 40)
FIELD(redlock_status_t, failed_locked, 48, 48)
FIELD(redlock_status_t, failed_no_quorum, 56, 56)
FIELD(redlock_status_t, failed_other, 64, 64)
FIELD(redlock_status_t, rounds, 72, 72)
FIELD(redlock_status_t, renewed, 80, 80)
FIELD(redlock_status_t, renew_failed, 88, 88)
FIELD(redlock_status_t, released, 96, 96)
FIELD(redlock_status_t, lost, 104, 104)
FIELD(redlock_status_t, clock_jumps, 112, 112)
FIELD(redlock_status_t, clock_steps, 120, 120)
FIELD(redlock_status_t, guard_ms, 128, 128)
FIELD(redlock_status_t, wait, 136, 136)
FIELD(redlock_status_t, hold, 192, 192)
END(redlock_status_t, hold, 248, 248)

FIELD(redlock_master_status_t, size, 0, 0)
FIELD(redlock_master_status_t, index, 4, 4)
FIELD(redlock_master_status_t, state, 8, 8)
FIELD(redlock_master_status_t, err, 12, 12)
FIELD(redlock_master_status_t, in_flight, 16, 16)
FIELD(redlock_master_status_t, owed, 20, 20)
FIELD(redlock_master_status_t, connects, 24, 24)
FIELD(redlock_master_status_t, resp3, 28, 28)
FIELD(redlock_master_status_t, tracked, 32, 32)
FIELD(redlock_master_status_t, replies, 40, 40)
FIELD(redlock_master_status_t, errors, 48, 48)
FIELD(redlock_master_status_t, name, 56, 56)
FIELD(redlock_master_status_t, address, 89, 89)
FIELD(redlock_master_status_t, guard_ms, 208, 208)
END(redlock_master_status_t, guard_ms, 216, 216)

FIELD(redlock_reconfigure_report_t, size, 0, 0)
FIELD(redlock_reconfigure_report_t, written, 4, 4)
FIELD(redlock_reconfigure_report_t, old_masters, 8, 8)
FIELD(redlock_reconfigure_report_t, old_needed, 12, 12)
FIELD(redlock_reconfigure_report_t, new_masters, 16, 16)
FIELD(redlock_reconfigure_report_t, new_needed, 20, 20)
FIELD(redlock_reconfigure_report_t, old_err, 24, 24)
FIELD(redlock_reconfigure_report_t, new_err, 84, 84)
END(redlock_reconfigure_report_t, new_err, 144, 144)

FIELD(redlock_site_left_t, size, 0, 0)
FIELD(redlock_site_left_t, old_masters, 4, 4)
FIELD(redlock_site_left_t, needed, 8, 8)
FIELD(redlock_site_left_t, say, 12, 12)
FIELD(redlock_site_left_t, masters, 16, 16)
FIELD(redlock_site_left_t, max_ttl_ms, 20, 20)
FIELD(redlock_site_left_t, done_s, 24, 24)
END(redlock_site_left_t, done_s, 32, 32)

FIELD(redlock_item_t, type, 0, 0)
FIELD(redlock_item_t, depth, 4, 4)
FIELD(redlock_item_t, number, 8, 8)
FIELD(redlock_item_t, text, 16, 16)
END(redlock_item_t, text, 24, 24)

FIELD(redlock_question_t, word, 0, 0)
FIELD(redlock_question_t, words, 8, 4)
FIELD(redlock_question_t, err, 12, 8)
FIELD(redlock_question_t, item, 16, 12)
FIELD(redlock_question_t, items, 24, 16)
FIELD(redlock_question_t, rtt_us, 28, 20)
FIELD(redlock_question_t, asked_ns, 32, 24)
END(redlock_question_t, asked_ns, 40, 32)

FIELD(redlock_site_facts_t, size, 0, 0)
FIELD(redlock_site_facts_t, masters, 4, 4)
FIELD(redlock_site_facts_t, quorum, 8, 8)
FIELD(redlock_site_facts_t, key_prefix_size, 12, 12)
FIELD(redlock_site_facts_t, key_prefix, 16, 16)
FIELD(redlock_site_facts_t, record, 49, 49)
FIELD(redlock_site_facts_t, name, 177, 177)
FIELD(redlock_site_facts_t, address, 210, 210)
FIELD(redlock_site_facts_t, warning, 328, 328)
FIELD(redlock_site_facts_t, redis_cli, 336, 332)
FIELD(redlock_site_facts_t, has_password, 1360, 1356)
END(redlock_site_facts_t, has_password, 1368, 1360)

FIELD(redlock_site_tls_t, size, 0, 0)
FIELD(redlock_site_tls_t, step_us, 4, 4)
FIELD(redlock_site_tls_t, ends_s, 8, 8)
FIELD(redlock_site_tls_t, version, 16, 16)
FIELD(redlock_site_tls_t, cipher, 32, 32)
FIELD(redlock_site_tls_t, denied, 96, 96)
END(redlock_site_tls_t, denied, 160, 160)

/* What this compilation is meant to be. */
_Static_assert(sizeof(time_t) == TIME_T_BYTES, "time_t has another width");
