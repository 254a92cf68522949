#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""{ redlock version; redlock config template; } | man_page.py: redlock.json(5), src/tool/man/redlock.json.5.

The template is printed from the parser's own table of keys, so the page cannot differ from the parser.
"""
import re
import sys

HEAD = r'''.\" Made by toolchains/man_page.py of `redlock config template`, from the parser's own table of keys.
.TH REDLOCK.JSON 5 "" "VERSION" "File formats"
.SH NAME
redlock.json \- the configuration of redlock
.SH DESCRIPTION
A JSON object. Unknown keys and keys that stand twice are errors. A line that begins with // is a comment.
.B redlock config check
tells what is wrong with a file, and
.B redlock config template
prints a new one.
.PP
All gateways of a site need the same
.BR masters ,
.B key_prefix
and
.BR timing.max_ttl_ms .
.SH KEYS
.TP
.BR masters " (an array of 1..15)"
A master is a URL,
.I redis://[user[:password]@]host[:port]
or
.IR unix:///path/of/socket ,
with TLS
.IR rediss://[user[:password]@]host[:port] ,
or an object with the keys
.BR url ,
.BR name ,
.BR username ,
.BR password ,
.B password_file
and
.BR tls .
The default name is the address.
An odd number of independent servers is best: one of three, or two of five, may fail.
'''
TLS_HEAD = r'''.SS Object \(dqtls\(dq
Only a library with TLS knows rediss:// and this object:
.B redlock version
then ends in +openssl or +mbedtls.
The object
.B tls
of one master has the same keys, and replaces them value by value.
The files are read again when a connection begins and they have changed.
'''
TLS_KEYS = r'''.TP
.BR ca_file " (" "1..128 bytes" )
Certificates of the authorities, PEM. A master's certificate must come from one of them, be
valid today, and be for the server's name. A rediss:// master needs ca_file or pin.
.TP
.BR cert_file " (" "1..128 bytes" )
This gateway's certificate, PEM, where the masters ask for one. With key_file.
.TP
.BR key_file " (" "1..128 bytes" )
Its key, PEM: chmod 600.
.TP
.BR server_name " (" "a host name or a numeric address" )
What the masters' certificates are for. Default: the host in the master's URL.
.TP
.BR min_version " (" "1.2 or 1.3" )
The oldest version of TLS. Default: 1.2.
.TP
.BR pin " (" "1..4 of sha256: and 64 hexadecimal digits" )
SHA-256 of the masters' public keys, between commas or as an array. Without ca_file the key
alone decides, and no date counts: for gateways without a clock. With it both must be right.
'''
FOOT = r'''.SH FILES
.I /etc/redlock/redlock.json
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
            yield from ['.TP', f'.BR {key[2]} " (" "{value_range}" )', *text]
            if not key[1]:
                yield f'Default: {key[3] or "empty"}.'
        elif comment:
            comments.append(comment[1])


# The page is one for all builds, and a program without TLS prints no such section.
version = sys.stdin.readline().strip().split('+')[0]
keys, _, tls_keys = ('\n'.join(pages_of_keys(sys.stdin.read())) + '\n').partition('.SS Object \\(dqtls\\(dq\n')
if tls_keys not in ('', TLS_KEYS):
    sys.exit('the keys of TLS are not as this script has them:\n' + tls_keys)
print(HEAD.replace('VERSION', version) + keys + TLS_HEAD + TLS_KEYS + FOOT, end='')
