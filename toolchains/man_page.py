#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""(redlock version; redlock config template) | man_page.py: redlock.json(5), src/tool/man/redlock.json.5.

It is made from what the program prints, which is made from src/base/key_map.hpp. The keys of TLS, which not every
program prints, are taken from that file.
"""
import ast
import pathlib
import re
import sys

HEAD = r'''.\" Made by toolchains/man_page.py from src/base/key_map.hpp.
.TH REDLOCK.JSON 5 "" "VERSION" "File formats"
.SH NAME
redlock.json \- the configuration of redlock
.SH DESCRIPTION
A JSON object. Unknown keys and keys that stand twice are errors. Lines that begin with // are comments.
\fBredlock config template\fR prints a new file, and \fBredlock config check\fR tells what is wrong.
.SH KEYS
.TP
\fBmasters\fR (an array of 1..15)
A master is a URL, \fIredis://[user[:password]@]host[:port][/0]\fR or \fIunix:///path/of/socket\fR, with TLS
\fIrediss://\fR, or an object with the keys \fBurl\fR, \fBname\fR (else the address), \fBusername\fR, \fBpassword\fR,
\fBpassword_file\fR (the password alone, on one line) and \fBtls\fR. All gateways of a site need the same masters.
A host is an address, or a name of one server; a name that /etc/hosts does not have waits for the name servers
(resolv.conf(5): options timeout:1 attempts:1).
'''
TLS_HEAD = r'''Only a library with TLS knows rediss:// and this object: \fBredlock version\fR ends in +openssl or
+mbedtls. The object \fBtls\fR of one master replaces these keys value by value. Files are read when a connection
begins.
'''
FOOT = r'''.SH EXAMPLES
Three masters; one has different addresses, so all gateways write the same name:
.PP
.nf
    {
      "username": "gateway",
      "password": "secret",
      "masters": [ "redis://10.0.0.11", "redis://10.0.0.12", { "url": "redis://192.168.7.2", "name": "roof" } ]
    }
.fi
.PP
The same with TLS:
.PP
.nf
    {
      "masters": [ "rediss://10.0.0.11", "rediss://10.0.0.12", "rediss://10.0.0.13" ],
      "tls": {
        "ca_file": "/etc/redlock/ca.pem",
        "cert_file": "/etc/redlock/gw-17.pem",
        "key_file": "/etc/redlock/gw-17.key"
      }
    }
.fi
.SH FILES
.I /etc/redlock/redlock.json
.PP
Every file belongs to root or to the user of the program, and nobody else may write it. A file with a secret, which is a
password_file, tls.key_file, or a configuration with a password in it, may not be read by others; its group may:
\fIchown root:GROUP FILE; chmod 640 FILE\fR.
.PP
A symbolic link is followed if it belongs to root or to that user. So a password_file may be a credential of systemd
(\fILoadCredential=\fR) or a secret that Kubernetes or Docker mounts.
.PP
When a master refuses the password, a password_file that has changed is read again, and the new password is tried at
once. If the file is no good, or may not be read any more, the last password stays in use, and the log says so. Files of
TLS are read again when a connection begins. A password that stands in the configuration is read once.
.SH SEE ALSO
.BR redlock (1)
'''


def pages_of_keys(template):
    # Above each key stand its comments; the last of them is its range. A key that is a comment is an example.
    comments = []
    for line in re.sub(r'\n  "masters": \[.*?\n  \]', '', template, flags=re.S).splitlines():
        section = re.match(r'  "(\w+)": \{$', line)
        key = re.match(r' +(// )?"(\w+)": "?(.*?)"?,?$', line)
        comment = re.match(r' +// (.*)$', line)
        if section:
            comments = []
            yield rf'.SS Object \(dq{section[1]}\(dq'
        elif key:
            *text, value_range = comments
            comments = []
            yield from ['.TP', rf'\fB{key[2]}\fR ({value_range})', *text]
            if not key[1]:
                yield f'Default: {key[3] or "empty"}.'
        elif comment:
            comments.append(comment[1])


def pages_of_tls_keys(key_map):
    rows = key_map.partition('#define REDLOCK_TLS_KEY_MAP(TEXT, OTHER)')[2].partition('\n\n')[0]
    strings = r'((?:"[^"]*"[\s\\]*)+)'
    for name, value_range, text in re.findall(rf'\((\w+),[^"]*("[^"]*"),\s+(?:\\\s+)?"[^"]*",[\s\\]*{strings}\)', rows):
        text = re.sub(r'\\\n', '\n', text)
        yield f'.TP\n\\fB{name}\\fR ({ast.literal_eval(value_range)})\n' + ast.literal_eval(f'({text})')


version, template = sys.stdin.read().split('\n', 1)
number = version.split('+')[0].split('-')[0]
keys = '\n'.join(pages_of_keys(template.partition('\n  "tls": {')[0]))
tls_keys = '\n'.join(pages_of_tls_keys((pathlib.Path(__file__).parents[1] / 'src/base/key_map.hpp').read_text()))
print(HEAD.replace('VERSION', number) + keys + '\n.SS Object \\(dqtls\\(dq\n' + TLS_HEAD + tls_keys +
      '\n' + FOOT, end='')
