// SPDX-License-Identifier: MIT
//
// The one rule of files: who owns, writes and reads a configuration, a file with a password, and those that TLS names;
// which links are followed. Root makes files of others, and judges as root or as the user 12345.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/password_file.hpp"
#include "config/file.hpp"
#include "config_fixture.hpp"

namespace redlock::test {
namespace {

constexpr uid_t us = 12'345, stranger = 23'456;
const char* const no_fault = "";

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/redlock-files-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    path_ = name;
    EXPECT_EQ(chmod(name, 0755), 0);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string file(const std::string& name, const std::string& content, mode_t mode = 0600) const {
    std::ofstream(path(name), std::ios::binary) << content;
    EXPECT_EQ(chmod(path(name).c_str(), mode), 0);
    return path(name);
  }
  std::string link(const std::string& name, const std::string& target) const {
    EXPECT_EQ(symlink(target.c_str(), path(name).c_str()), 0);
    return path(name);
  }

 private:
  std::string path_;
};

// The kinds of files, and how each is read. What is read: "" or the sentence.
enum Kind { configuration, with_password, password_file, tls_key, tls_certificate };

std::string text_of(Kind kind) {
  if (kind == configuration) return R"({"masters":["redis://a"]})";
  return kind == with_password ? R"({"masters":["redis://a","redis://:hunter2@b"]})" : "hunter2\n";
}

std::string read(Kind kind, const std::string& path) {
  if (kind >= tls_key) {
    struct stat status;
    FileFault fault = FileFault::none;
    const int fd = open_by_rule(path.c_str(), kind == tls_key, status, fault);
    if (fd >= 0) close(fd);
    char text[300];
    TextWriter out(text, sizeof text);
    write_file_fault(out, bytes_of(path.c_str()), fault);
    return fault == FileFault::none ? "" : text;
  }
  const Config cfg = make();
  const std::string json = R"({"masters":[{"url":"redis://a","password_file":")" + path + "\"}]}";
  const int result = kind == password_file ? redlock_config_load_json(cfg.get(), json.data(), json.size())
                                           : redlock_config_load_file(cfg.get(), path.c_str());
  const std::string error = result == 0 ? "" : redlock_config_error(cfg.get());
  const std::string field = "masters[0].password_file: ";
  if (kind != password_file || result == 0) return error;
  EXPECT_EQ(error.substr(0, field.size()), field);
  EXPECT_EQ(error.find("hunter2"), std::string::npos);
  return error.substr(field.size());
}

// The sentence with the path for each @.
std::string about(const std::string& path, std::string sentence) {
  for (size_t at = 0; (at = sentence.find('@', at)) != std::string::npos; at += path.size()) {
    sentence.replace(at, 1, path);
  }
  return sentence;
}

// ---- the file -------------------------------------------------------------------------------------------------------

const char strangers[] =
    "@: belongs neither to root nor to this user; type: chown root:GROUP @; chmod 640 @";
const char denied[] = "@: may not be read by this user; type: chown root:GROUP @; chmod 640 @";
const char written[] = "@: can be written by group or others; type: chmod go-w @";
const char exposed[] = "@: can be read by others; type: chmod o-r @";
const char password_exposed[] = "@: others can read its password; type: chmod o-r @";

struct Row {
  uid_t owner;  // of the group `us`
  mode_t mode;
  const char* open;    // a configuration without a password, a certificate
  const char* secret;
};
const Row rows[] = {
    {us, 0600, no_fault, no_fault},
    {us, 0400, no_fault, no_fault},
    {us, 0640, no_fault, no_fault},
    {0, 0640, no_fault, no_fault},   // root:GROUP 640
    {0, 0440, no_fault, no_fault},   // as systemd makes a credential: root's, and an ACL whose mask stands at the group
    {0, 0644, no_fault, exposed},
    {us, 0604, no_fault, exposed},
    {us, 0444, no_fault, exposed},
    {us, 0620, written, written},
    {us, 0602, written, written},
    {us, 0660, written, written},
    {0, 0666, written, written},
    {0, 0600, denied, denied},
    {stranger, 0600, denied, denied},
    {stranger, 0640, strangers, strangers},
    {stranger, 0644, strangers, strangers},
    {stranger, 0666, strangers, strangers},
};

TEST(FileRule, OwnerAndModeOfEachKind) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const Folder folder;
  for (const Kind kind : {configuration, with_password, password_file, tls_key, tls_certificate}) {
    const std::string file = folder.file("file", text_of(kind));
    const bool secret = kind != configuration && kind != tls_certificate;
    for (const Row& row : rows) {
      ASSERT_EQ(chown(file.c_str(), row.owner, us), 0);
      ASSERT_EQ(chmod(file.c_str(), row.mode), 0);
      ASSERT_EQ(setegid(us), 0);
      ASSERT_EQ(seteuid(us), 0);
      const std::string said = read(kind, file);
      ASSERT_EQ(seteuid(0), 0);
      ASSERT_EQ(setegid(0), 0);
      const char* const wanted = !secret ? row.open
                                 : kind == with_password && row.secret == exposed ? password_exposed
                                                                                  : row.secret;
      EXPECT_EQ(said, about(file, wanted)) << kind << " " << row.owner << " " << std::oct << row.mode;
    }
  }
}

// What root runs reads a stranger's file no more than anybody else.
TEST(FileRule, RootIsNoException) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const Folder folder;
  const std::string file = folder.file("file", "hunter2", 0600);
  ASSERT_EQ(chown(file.c_str(), us, us), 0);
  EXPECT_EQ(read(password_file, file), about(file, strangers));
  EXPECT_EQ(read(tls_certificate, file), about(file, strangers));
}

// ---- links ----------------------------------------------------------------------------------------------------------

const char strangers_link[] = "@: is a link that belongs neither to root nor to this user; make it anew as root";

TEST(FileRule, ALinkIsAsGoodAsItsOwnerAndItsTarget) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives links away";
  const Folder folder;
  for (const Kind kind : {configuration, with_password, password_file, tls_key, tls_certificate}) {
    const std::string target = folder.file("target", text_of(kind), 0640);
    const std::string link = folder.link("link", "target"), second = folder.link("second", link);
    for (const uid_t owner : {uid_t{0}, us, stranger}) {
      const std::string wanted = owner == stranger ? strangers_link : no_fault;
      for (const std::string& path : {link, second}) {
        ASSERT_EQ(lchown(path.c_str(), owner, owner), 0);
        ASSERT_EQ(chown(target.c_str(), 0, us), 0);  // root's own, which a stranger would have us read
        ASSERT_EQ(setegid(us), 0);
        ASSERT_EQ(seteuid(us), 0);
        const std::string said = read(kind, path);
        ASSERT_EQ(seteuid(0), 0);
        ASSERT_EQ(setegid(0), 0);
        EXPECT_EQ(said, about(path, wanted)) << kind << " " << owner;
        if (owner != stranger) continue;
        EXPECT_EQ(read(kind, second), about(second, strangers_link)) << "also where the first link is ours";
        ASSERT_EQ(lchown(path.c_str(), 0, 0), 0);
      }
    }
    ASSERT_EQ(chmod(target.c_str(), 0666), 0);
    EXPECT_EQ(read(kind, link), about(link, written)) << "the target is judged";
    for (const std::string& path : {target, link, second}) unlink(path.c_str());
  }
}

// As Kubernetes and Docker mount a secret: the file leads through a folder that is a link, and changes in one step.
TEST(FileRule, LinksOfAMountedSecret) {
  const Folder folder;
  std::filesystem::create_directory(folder.path("..2026_11_28"));
  folder.file("..2026_11_28/password", "hunter2\n", 0440);
  folder.link("..data", "..2026_11_28");
  const std::string path = folder.link("password", "..data/password");
  EXPECT_EQ(read(password_file, path), "");
  const FileStamp before = look_at(path.c_str());
  std::filesystem::create_directory(folder.path("..2026_11_29"));
  folder.file("..2026_11_29/password", "next\n", 0440);
  folder.link("..data_tmp", "..2026_11_29");
  std::filesystem::rename(folder.path("..data_tmp"), folder.path("..data"));
  EXPECT_FALSE(look_at(path.c_str()) == before);
  char text[128 + password_rest];
  size_t size = 0;
  FileStamp stamp;
  EXPECT_EQ(read_password(path.c_str(), text, 128, size, stamp), FileFault::none);
  EXPECT_EQ(std::string(text, size), "next");
  EXPECT_TRUE(stamp == look_at(path.c_str())) << "of what was read";
}

TEST(FileRule, LinksThatLeadNowhere) {
  const Folder folder;
  EXPECT_EQ(read(configuration, folder.link("a", "nowhere")), folder.path("a") + ": does not exist");
  EXPECT_EQ(read(configuration, folder.link("b", "b")),
            folder.path("b") + ": cannot be read: errno " + std::to_string(ELOOP));
  EXPECT_EQ(read(configuration, folder.link("c", std::string(1'100, 'x'))).find(folder.path("c") + ": cannot be read"),
            0u);
  EXPECT_EQ(read(configuration, folder.link("d", "/tmp")), folder.path("d") + ": is a folder");
  folder.file("0", text_of(configuration));
  for (int n = 1; n <= 9; ++n) folder.link(std::to_string(n), std::to_string(n - 1));
  EXPECT_EQ(read(configuration, folder.path("8")), "");
  EXPECT_NE(read(configuration, folder.path("9")), "") << "more than eight";
}

// Descriptors that were handed over: their links in /proc lead where no path does.
TEST(FileRule, ADescriptorIsJudgedLikeAnyFile) {
  const Folder folder;
  const std::string file = folder.file("gone", "{}", 0600), bad = folder.file("bad", "{}", 0666);
  const int was = dup(0), good_in = open(file.c_str(), O_RDONLY), bad_in = open(bad.c_str(), O_RDONLY);
  unlink(file.c_str());
  ASSERT_EQ(dup2(good_in, 0), 0);
  EXPECT_EQ(read(configuration, "/dev/stdin"), "");
  ASSERT_EQ(dup2(bad_in, 0), 0);
  EXPECT_EQ(read(configuration, "/dev/stdin"), about("/dev/stdin", written));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(dup2(ends[0], 0), 0);
  EXPECT_EQ(read(configuration, "/dev/stdin"), "/dev/stdin: is not a regular file") << "and nothing is waited for";
  ASSERT_EQ(dup2(was, 0), 0);
  for (const int fd : {was, good_in, bad_in, ends[0], ends[1]}) close(fd);
}

// ---- what a password file says --------------------------------------------------------------------------------------

std::string password_in(const Folder& folder, const std::string& content, size_t max = 2'048) {
  const std::unique_ptr<char[]> text(new char[max + password_rest]);  // a sanitizer sees a write past them
  size_t size = 0;
  FileStamp stamp;
  const FileFault fault = read_password(folder.file("password", content).c_str(), text.get(), max, size, stamp);
  if (fault == FileFault::none) return std::string(text.get(), size);
  char sentence[300];
  TextWriter out(sentence, sizeof sentence);
  write_file_fault(out, Bytes(), fault);
  return std::string("(") + sentence + ")";
}

TEST(PasswordFile, OneLineWithoutItsEnd) {
  const Folder folder;
  EXPECT_EQ(password_in(folder, "hunter2"), "hunter2");
  EXPECT_EQ(password_in(folder, " hunter2 \r\n"), " hunter2 ");
  EXPECT_EQ(password_in(folder, ""), "(is empty)");
  EXPECT_EQ(password_in(folder, "\n"), "(is empty)");
  EXPECT_EQ(password_in(folder, "hunter2\n\n"), "(holds more than one line)");
  EXPECT_EQ(password_in(folder, std::string("a\0b", 3)), "(holds a NUL)");
  for (const size_t max : {128u, 2'048u}) {
    EXPECT_EQ(password_in(folder, std::string(max, 'p') + "\r\n", max), std::string(max, 'p'));
    for (const size_t more : {1u, 2u, 3u, 4u, 5'000u}) {
      EXPECT_EQ(password_in(folder, std::string(max + more, 'p'), max),
                "(holds more bytes than limits.password_bytes allows)");
    }
  }
}

// The room is what limits.password_bytes says, whichever stands first.
TEST(PasswordFile, ALongPasswordNeedsRoom) {
  const Folder folder;
  const std::string file = folder.file("password", std::string(2'048, 'p'));
  const std::string master = R"("masters":[{"url":"redis://a","password_file":")" + file + "\"}]";
  const auto size_with = [&](const std::string& limits, std::string& error) {
    const Config cfg = make();
    const std::string json = "{" + master + limits + "}";
    EXPECT_EQ(redlock_config_load_json(cfg.get(), json.data(), json.size()), 0) << redlock_config_error(cfg.get());
    Settings settings;
    error = finish(*cfg, settings) == 0 ? "" : redlock_config_error(cfg.get());
    return settings.master[0].password.size;
  };
  std::string error;
  size_with("", error);
  EXPECT_EQ(error, "masters[0].password_file: 2048 bytes are more than 128 (limits.password_bytes)");
  size_with(R"(,"limits":{"password_bytes":2047})", error);
  EXPECT_EQ(error, "masters[0].password_file: 2048 bytes are more than 2047 (limits.password_bytes)");
  EXPECT_EQ(size_with(R"(,"limits":{"password_bytes":2048})", error), 2'048u);
  EXPECT_EQ(error, "");
}

// A path that leads nowhere may be the password, in the wrong field.
TEST(PasswordFile, APathIsToldOnlyWhereSomethingIs) {
  const Folder folder;
  EXPECT_EQ(read(password_file, "hunter2"), "does not exist");
  EXPECT_EQ(read(password_file, "/hunter2"), "does not exist");
  EXPECT_EQ(read(password_file, folder.path("")), folder.path("") + ": is a folder");
}

// ---- read again -----------------------------------------------------------------------------------------------------

TEST(PasswordFile, IsReadAgainOnceForEachChange) {
  const Folder folder;
  const std::string path = folder.file("password", "old");
  char rooms[2][128 + password_rest] = {"old"};
  Bytes password(rooms[0], 3);
  redlock::PasswordFile file{look_at(path.c_str()), path.c_str(), rooms[0], 128, rooms[1], &password};
  EXPECT_FALSE(read_again(file)) << "nothing has changed";
  EXPECT_TRUE(file.told);

  folder.file("next", "a-new-password\n");
  std::filesystem::rename(folder.path("next"), path);
  EXPECT_TRUE(read_again(file));
  EXPECT_EQ(std::string(password.data, password.size), "a-new-password");
  EXPECT_FALSE(file.told);
  EXPECT_FALSE(read_again(file)) << "once";

  // What is no good changes nothing, and is told; the next change is looked at again.
  const struct {
    const char* content;
    mode_t mode;
    FileFault fault;
  } bad[] = {{"p", 0666, FileFault::others_write}, {"", 0600, FileFault::empty}, {nullptr, 0, FileFault::missing}};
  for (const auto& next : bad) {
    if (next.content != nullptr) {
      folder.file("next", next.content, next.mode);
      std::filesystem::rename(folder.path("next"), path);
    } else {
      unlink(path.c_str());
    }
    file.told = true;
    EXPECT_FALSE(read_again(file));
    EXPECT_EQ(file.fault, next.fault);
    EXPECT_FALSE(file.told);
    file.told = true;
    EXPECT_FALSE(read_again(file));
    EXPECT_TRUE(file.told) << "once";
    EXPECT_EQ(std::string(password.data, password.size), "a-new-password");
  }
  folder.file("password", "short");
  EXPECT_TRUE(read_again(file));
  EXPECT_EQ(std::string(rooms[0], sizeof rooms).find("password"), std::string::npos) << "the old one is wiped";
  EXPECT_EQ(file.fault, FileFault::none);
}

}  // namespace
}  // namespace redlock::test
