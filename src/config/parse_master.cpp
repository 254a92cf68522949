// SPDX-License-Identifier: MIT
//
// One master in JSON: a URL, or an object with a URL and what the URL does not say.
#include "config/file.hpp"
#include "config/json_item.hpp"
#include "config/keys.hpp"
#include "config/parse.hpp"
#include "config/tls.hpp"
#include "config/url.hpp"

namespace redlock {
namespace {

enum Field { url, name, username, password, password_file, tls, field_count };
constexpr char field_names[] = "url\0name\0username\0password\0password_file\0tls";

using MasterFields = const cJSON* [field_count];

int sort_master_field(const cJSON& item, MasterFields& fields, TextWriter& why) {
  const Bytes name = bytes_of(item.string);
  for (unsigned i = 0; i < field_count; ++i) {
    if (bytes_of(nth_text(field_names, i)) != name) continue;
    const bool before = fields[i] != nullptr;
    fields[i] = &item;
    if (!before && (is(item, cJSON_String) || i == tls)) return 0;
    why.raw(".").raw(name);
    return before ? fail(why, ": given twice") : not_a("a string", item, why);
  }
  return fail(why.raw(".").escaped(name, shown_bytes), ": no such key");
}

int set_master_text(const char* path, const cJSON* item, uint32_t max, Text& out, TextWriter& why) {
  if (item == nullptr) return 0;
  const Bytes value = bytes_of(item->valuestring);
  if (!out.empty()) return fail(why.raw(path), ": given in the url, too");
  if (value.size < 1 || value.size > max) return bad_size(why, path, value.size, 1, max);
  out.assign(value);
  return 0;
}

int set_master_name(const cJSON* item, Text& out, TextWriter& why) {
  const int result = set_master_text(".name", item, REDLOCK_MASTER_NAME_MAX, out, why);
  if (result != 0 || item == nullptr) return result;
  return has_control_character(out.bytes()) ? fail(why, ".name: holds a control character") : 0;
}

int set_master_password(const MasterFields& fields, Master& master, TextWriter& why) {
  Text& out = master.password;
  if (fields[password_file] == nullptr) {
    return set_master_text(".password", fields[password], REDLOCK_PASSWORD_MAX, out, why);
  }
  why.raw(".password_file");
  if (fields[password] != nullptr) return fail(why, ": given besides a password");
  if (!out.empty()) return fail(why, ": given besides a password in the url");
  return read_password_file(fields[password_file]->valuestring, master.file, why);
}

// Each step writes its error behind the path of the master; next() drops what the step before has written.
class Steps {
 public:
  Steps(TextWriter& why) : start_(why), why_(why) {}
  TextWriter& next() { return why_ = start_; }

 private:
  const TextWriter start_;
  TextWriter& why_;
};

}  // namespace

int fill_master(const cJSON& item, Master& master, TextWriter& why) {
  if (is(item, cJSON_String)) return parse_url(bytes_of(item.valuestring), master, why);
  if (!is(item, cJSON_Object)) return not_a("a URL or an object", item, why);
  MasterFields fields = {};
  for (const cJSON* child = item.child; child != nullptr; child = child->next) {
    const int result = sort_master_field(*child, fields, why);
    if (result != 0) return result;
  }
  if (fields[url] == nullptr) return fail(why, ".url: is missing");
  Steps steps(why);
  int result = parse_url(bytes_of(fields[url]->valuestring), master, why);
  if (result == 0) result = set_master_name(fields[name], master.name, steps.next());
  if (result == 0) result = set_master_text(".username", fields[username], REDLOCK_USER_MAX, master.user, steps.next());
  if (result == 0) result = set_master_password(fields, master, steps.next());
  if (result == 0 && fields[tls] != nullptr) result = read_tls(*fields[tls], ".tls", master.tls, steps.next());
  if (result == 0) steps.next();
  return result;
}

}  // namespace redlock
