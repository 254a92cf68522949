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
or an object with the keys
.BR url ,
.BR name ,
.BR username ,
.B password
and
.BR password_file .
The default name is the address.
An odd number of independent servers is best: one of three, or two of five, may fail.
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


version = sys.stdin.readline().strip()
print(HEAD.replace('VERSION', version) + '\n'.join(pages_of_keys(sys.stdin.read())) + '\n' + FOOT, end='')
