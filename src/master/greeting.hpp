// SPDX-License-Identifier: MIT
//
// Greeting: from a fresh connection to a master that can be asked.
//
// HELLO 3 (with AUTH) goes alone, since nothing may be pipelined behind an AUTH that can fail. A server that does not
// know HELLO gets AUTH alone, and RESP2. Then the rest goes in one write: tracking on RESP3; on RESP2 the role, and the
// connection's id where there is a guard; the scripts; what the guard wants to know (master/record); a ping. The
// greeting is done when the ping is answered; the session is up when all is answered, CLIENT KILL too. A client that
// greets servers of any role sends the login and the ping alone.
//
// Strays. A connection that broke may have left commands in the server's socket, and the server may execute them at any
// later time, for example when it thaws. So the next greeting ends the old connection on the server: CLIENT KILL ID,
// once INFO has shown that it is the same process, whose ids are still the same. After the reply to CLIENT KILL no
// command of the old connection can be executed any more. No command about a claim leaves before that reply, so the id
// of one old connection is enough. Where the server refuses CLIENT KILL, or an id is not known, the client is told that
// strays may still come (Strays::at_large).
#pragma once
#include "base/settings.hpp"
#include "master/outgoing.hpp"
#include "master/record.hpp"

namespace redlock {

class Greeting {
 public:
  using Request = Fifo::Request;
  Greeting(const MasterSettings& master, Bytes client_name, Record& record, Outgoing& out)
      : master_(master), client_name_(client_name), record_(record), out_(out) {}

  // A new connection. The nonce makes its pings different from those of other connections.
  void begin(uint32_t nonce, const Instant& now);
  // One item of the reply to one of the greeting's requests. 0, or the reason to close the connection.
  int handle(unsigned kind, const resp::Item& item, const Instant& now);
  // Why the connection is to be closed, for a reason of the server's.
  int what_refusal_means(int error) const;
  const MasterSettings& master() const { return master_; }
  bool is_done() const { return greeted_; }
  bool resp3() const { return resp3_; }

  // Also later, while nothing else is in flight.
  void send_ping(const Instant& now);

  // ---- strays
  // The connection that has just broken is the one to end.
  void keep_old_connection();
  // Did older connections leave SETs unanswered?
  void leave_strays(bool any) { strays_ = any; }
  // INFO is answered, so the process is known: end the old connection where that is possible.
  void end_old_connection(const Instant& now);
  // The master is up: strays that were not ended stay at large.
  void came_up();

 private:
  enum Field : uint8_t { field_other, field_role, field_mode, field_id };

  bool any_role() const { return record_.guard().settings().any_role; }
  void send_hello(const Instant& now);
  void send_auth(const Instant& now);
  void send_rest(const Instant& now);
  int handle_hello(const resp::Item& item, const Instant& now);
  int hello_failed(int error, const Instant& now);
  int handle_auth(const resp::Item& item, const Instant& now);
  int handle_role(const resp::Item& item);
  int handle_load(const resp::Item& item);
  int handle_id(const resp::Item& item);
  int handle_kill(const resp::Item& item);
  int handle_ping(const resp::Item& item);

  const MasterSettings& master_;
  const Bytes client_name_;
  Record& record_;
  Outgoing& out_;
  int64_t id_ = 0;         // of this connection on the server; 0: not known
  int64_t old_id_ = 0;     // of the one that broke with something unanswered
  char old_run_id_[Guard::id_size] = {};
  uint32_t nonce_ = 0;        // of the last ping
  bool resp3_ = false;
  bool role_known_ = false;   // HELLO's reply has told it
  bool greeted_ = false;      // the greeting's ping is answered
  bool strays_ = false;       // there are, and the client was not told yet what became of them
  uint8_t field_ = 0;         // while the reply to HELLO or ROLE is read: which field's value comes next
};

}  // namespace redlock
