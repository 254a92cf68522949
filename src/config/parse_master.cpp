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

struct MasterFields {
  const cJSON* url;
  const cJSON* name;
  const cJSON* username;
  const cJSON* password;
  const cJSON* password_file;
  const cJSON* tls;
};

struct MasterField {
  Bytes name;
  const cJSON* MasterFields::*place;
};

constexpr MasterField master_fields[] = {
    {"url", &MasterFields::url},
    {"name", &MasterFields::name},
    {"username", &MasterFields::username},
    {"password", &MasterFields::password},
    {"password_file", &MasterFields::password_file},
    {"tls", &MasterFields::tls},
};

int sort_master_field(const cJSON& item, MasterFields& fields, TextWriter& why) {
  const Bytes name = bytes_of(item.string);
  for (const MasterField& field : master_fields) {
    if (field.name != name) continue;
    const bool before = fields.*field.place != nullptr;
    fields.*field.place = &item;
    if (!before && (is(item, cJSON_String) || field.place == &MasterFields::tls)) return 0;
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

bool has_control_character(Bytes text) {
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = static_cast<unsigned char>(text.data[i]);
    if (c < 0x20 || c == 0x7F) return true;
  }
  return false;
}

int set_master_name(const cJSON* item, Text& out, TextWriter& why) {
  const int result = set_master_text(".name", item, REDLOCK_MASTER_NAME_MAX, out, why);
  if (result != 0 || item == nullptr) return result;
  return has_control_character(out.bytes()) ? fail(why, ".name: holds a control character") : 0;
}

int set_master_password(const MasterFields& fields, Master& master, TextWriter& why) {
  Text& out = master.password;
  if (fields.password_file == nullptr) {
    return set_master_text(".password", fields.password, REDLOCK_PASSWORD_MAX, out, why);
  }
  master.own_file = true;
  why.raw(".password_file");
  if (fields.password != nullptr) return fail(why, ": given besides a password");
  if (!out.empty()) return fail(why, ": given besides a password in the url");
  return read_password_file(fields.password_file->valuestring, out, why);
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
  MasterFields fields{};
  for (const cJSON* child = item.child; child != nullptr; child = child->next) {
    const int result = sort_master_field(*child, fields, why);
    if (result != 0) return result;
  }
  if (fields.url == nullptr) return fail(why, ".url: is missing");
  Steps steps(why);
  int result = parse_url(bytes_of(fields.url->valuestring), master, why);
  if (result == 0) result = set_master_name(fields.name, master.name, steps.next());
  if (result == 0) result = set_master_text(".username", fields.username, REDLOCK_USER_MAX, master.user, steps.next());
  if (result == 0) result = set_master_password(fields, master, steps.next());
  if (result == 0 && fields.tls != nullptr) result = read_tls(*fields.tls, ".tls", master.tls, steps.next());
  if (result == 0) steps.next();
  return result;
}

}  // namespace redlock
