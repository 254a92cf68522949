// SPDX-License-Identifier: MIT
//
// Tls: the TLS of one master. It keeps the settings, reads their files, judges certificates by dates, name and pins,
// and keeps one session to resume. The connection (port/uv/connection) owns the socket and calls begin, step, read,
// write and end; the engine (port/tls/engine) computes.
//
// Nothing of the peer's is believed before step() says done: it does so when the engine has checked the chain, and
// this file the rest. So the first plain text that leaves, the password, leaves to a peer that was checked.
//
// The files are looked at whenever a connection begins, and read again when one of them has changed. A file that cannot
// be used changes nothing: the old contents stay in use, and file_error() tells it.
#pragma once
#include "base/settings.hpp"
#include "base/tls_faults.hpp"
#include "port/tls/engine.hpp"
#include "port/tls/file.hpp"
#include "port/tls/record.hpp"

namespace redlock {

class Tls {
 public:
  using Progress = tls::Progress;

  Tls() = default;
  ~Tls();  // wipes and frees everything
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Once. Copies the settings and reads the files. 0; NOMEM; NOTSUP where the library has no TLS 1.3 and the settings
  // want it; or TLS_FILE, and file_error() says which.
  int init(const TlsSettings& settings);
  bool wanted() const { return wanted_; }

  // ---- one connection. The wire must stay until end(). utc_s: the time of day, seconds since 1970.
  int begin(const tls::Wire& wire, int64_t utc_s);  // 0, or NOMEM
  // One step of the handshake: takes at most one record from the wire. done: the peer is checked.
  Progress step();
  // These as in engine.hpp, after step() was done; before that read() and write() fail.
  Progress read(char* at, size_t room, size_t& got);
  bool has_read_ahead() const { return verified_ && tls::has_read_ahead(*link_); }
  Progress write(Bytes text, size_t& taken);
  Progress flush();
  // polite: says goodbye as far as the wire takes it at once. Keeps the session where it may be resumed. Nothing where
  // no connection is under way.
  void end(bool polite);
  bool under_way() const { return link_ != nullptr; }

  int error() const { return error_; }  // after Progress::failed, until begin()
  const TlsDate& wrong_date() const { return wrong_date_; }  // of the last TLS_EXPIRED or TLS_EARLY
  // The peer has not sent a byte in this connection's handshake. A Redis without TLS does so: it waits for the end of a
  // line, which a handshake does not have.
  bool silent() const { return gate_.silent(); }
  // Which file of the settings cannot be used now; Fault::none: all can. The old contents are in use.
  const TlsFile& file_error() const { return broken_file_; }

  // ---- for doctor and status, after done
  struct Facts {
    const char* version;
    const char* cipher;
    int64_t not_before_s;  // of the peer's own certificate
    int64_t not_after_s;   // the earliest end in the chain
    bool resumed;
  };
  bool facts(Facts& out) const;

 private:
  enum File : uint8_t { authorities, certificate, key, files };  // as TlsFile::Name

  int copy(const TlsSettings& settings);
  bool files_changed() const;
  int load();
  int use(const tls::FileText (&texts)[files]);
  void blame(unsigned file, TlsFile::Fault fault);
  void drop_session();
  void keep_session();
  Progress verify();
  Progress told(Progress progress);

  bool wanted_ = false;
  bool tls13_ = false;
  bool verified_ = false;
  int error_ = 0;
  char* strings_ = nullptr;                 // what the next six lie in
  const char* paths_[files] = {};           // null: the settings name no such file
  Bytes server_name_;
  Bytes sni_;                               // the same where it is a host name
  Bytes pins_;
  FileStamp stamps_[files];            // of what was read last, even where it was broken
  TlsFile broken_file_;
  tls::Trust* trust_ = nullptr;
  tls::Link* link_ = nullptr;
  tls::Ticket* ticket_ = nullptr;
  int64_t session_end_s_ = 0;               // the earliest end in the chain of the session's certificates
  int64_t utc_s_ = 0;                       // when the connection began
  TlsDate wrong_date_;
  tls::RecordGate gate_;
};

}  // namespace redlock
