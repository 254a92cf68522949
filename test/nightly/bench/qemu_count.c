/* SPDX-License-Identifier: MIT
 *
 * A plugin of qemu's user emulation (7.2 or newer) that counts instructions: qemu-arm -plugin qemu_count.so PROGRAM.
 * The program says by calls of close() with the numbers below what is counted, and when the counts are printed. The
 * declarations are those of QEMU's plugin API, version 1, as far as they are used; Debian ships no header.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "qemu_count.h"

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb* tb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*callback)(qemu_plugin_id_t id, struct qemu_plugin_tb* tb));
enum { ADD_U64 = 0 };
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb* tb, int operation, void* at, uint64_t by);
typedef void (*syscall_callback)(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
                                 uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, syscall_callback callback);

int qemu_plugin_version = 1;
int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv);

static uint64_t executed, begun, longest, total;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* tb) {
  (void)id;
  qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &executed, qemu_plugin_tb_n_insns(tb));
}

static void called(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                   uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)vcpu, (void)number, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if ((int32_t)a1 == COUNT_RESET) longest = total = 0;
  if ((int32_t)a1 == COUNT_BEGIN) begun = executed;
  if ((int32_t)a1 == COUNT_END) {
    const uint64_t step = executed - begun;
    total += step;
    if (step > longest) longest = step;
  }
  if ((int32_t)a1 == COUNT_PRINT) {
    fprintf(stderr, "    longest %.3f M instructions, together %.3f M\n", (double)longest / 1e6, (double)total / 1e6);
  }
}

int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc, char** argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_vcpu_syscall_cb(id, called);
  return 0;
}
