// SPDX-License-Identifier: MIT
//
// A file of metrics, which an agent may read at any time: it is replaced as a whole. Its successor is made beside it,
// under a name that no agent collects, and renamed. The lock of the folder lets programs that share a file take turns.
#pragma once

namespace redlock::tool {

// Ends the program if the file is there and is no file of metrics of redlock: `option` may name another one by mistake.
void check_is_ours(const char* option, const char* path);

// `write` writes the new file, readable for everybody, and returns false if that failed. False: errno says why the file
// was not replaced; EWOULDBLOCK: another program replaces it, for more than a second if `is_patient`.
bool replace_file(const char* path, bool is_patient, bool (*write)(void* self, int file), void* self);

}  // namespace redlock::tool
