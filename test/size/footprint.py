#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# What the library weighs on each processor whose compiler is here: built as it ships (MinSizeRel, no asserts), then
# asked with size(1), with the linker's map, with redlock_memory_size() and with the compiler's own record of stack use
# and calls. Prints one table of everything; exits 1 when a budget is missed. The numbers in the README come from here.
#   footprint.py SOURCE_FOLDER WORK_FOLDER [CMAKE]
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

# Debian's word for the processor, and the options of a compiler that has the target's root.
Target = collections.namedtuple('Target', 'name triplet emulator architecture options', defaults=('', []))
TARGETS = [Target('armhf', 'arm-linux-gnueabihf', ['qemu-arm'], 'armhf'),
           Target('aarch64', 'aarch64-linux-gnu', ['qemu-aarch64'], 'arm64'),
           Target('x86-64', '', [])]
MUSL = 'arm-linux-musleabihf'
KIB = 1024

# What we want, on armhf, and what fails: the same, or more where the goal is not met yet. A limit is lowered as soon as
# it can be.
Budget = collections.namedtuple('Budget', 'what goal limit')
BUDGETS = [
    Budget('text core and ports', 50 * KIB, 67 * KIB),
    Budget('text whole library', 80 * KIB, 100 * KIB),  # with configuration, JSON and all texts
    Budget('RAM 5 masters, 32 locks', 48 * KIB, 49 * KIB),
    Budget('RAM 3 masters, 1 lock', 12 * KIB, 11 * KIB + 512),
    Budget('stack lock path', 2 * KIB, 2 * KIB + 272),
    Budget('static musl gateway', 140 * KIB, 134 * KIB),
    Budget('static musl gateway with JSON', 140 * KIB, 150 * KIB),
    Budget('static musl redlock, above that gateway', 60 * KIB, 114 * KIB),
]


def run(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def tool(target, name):
    return f'{target.triplet}-{name}' if target.triplet else name


def with_root(target, source):
    """The target with the root that toolchains/sysroot.sh makes, if that has run."""
    root = source / 'build/sysroot' / target.architecture
    if not (root / 'packages').exists():
        return target
    return target._replace(options=[f'--sysroot={root}'], emulator=[*target.emulator, '-L', root])


def missing(target, work):
    """What is not here of what measure() needs, or ''. A compiler may be here without the target's libraries."""
    programs = [tool(target, 'gcc'), tool(target, 'g++'), *target.emulator[:1]]
    absent = [program for program in programs if not shutil.which(program)]
    if absent:
        return 'no ' + ', no '.join(absent)
    work.mkdir(parents=True, exist_ok=True)
    links = subprocess.run([programs[0], *target.options, '-x', 'c', '-', '-o', work / 'links', '-luv', '-lcjson'],
                           input='#include <cjson/cJSON.h>\n#include <uv.h>\nint main(void) { return 0; }\n',
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    return '' if links.returncode == 0 else 'no libuv or no cJSON of it'


def configure_and_build(cmake, source, build, toolchain, shared, flags, *options):
    (build / 'CMakeCache.txt').unlink(missing_ok=True)  # the libraries that it names may be gone
    command = [cmake, '-S', source, '-B', build, '-DCMAKE_BUILD_TYPE=MinSizeRel', f'-DBUILD_SHARED_LIBS={shared}',
               '-DREDLOCK_ASSERTS=OFF', '-DREDLOCK_BUILD_TESTS=OFF', '-DREDLOCK_BUILD_EXAMPLES=OFF',
               '-DREDLOCK_INSTALL=OFF', f'-DCMAKE_CXX_FLAGS={flags}', f'-DCMAKE_SHARED_LINKER_FLAGS={flags}',
               *options]
    if toolchain:
        command.append(f'-DCMAKE_TOOLCHAIN_FILE={source}/toolchains/{toolchain}.cmake')
    run(command)
    run([cmake, '--build', build, '--target', 'redlock', 'redlock_site', '--parallel', '2'])


# ---- sizes -----------------------------------------------------------------------------------------------------------

def berkeley(target, files):
    """{file: (text, data, bss)}; text is all that is read-only."""
    lines = run([tool(target, 'size'), *files]).splitlines()[1:]
    return {fields[5]: tuple(map(int, fields[:3])) for fields in (line.split(None, 5) for line in lines)}


def source_name(path):
    return re.sub(r'^.*?/[A-Za-z_]+\.dir/', '', str(path))[:-len('.o')]


def objects(target, build):
    """{source file: (text, data, bss)}"""
    found = sorted(path for path in build.rglob('*.cpp.o') if '.dir' in str(path) and '_CMakeLTOTest' not in str(path))
    sizes = berkeley(target, found)
    rooms = {}
    for path in found:
        target_name = re.search(r'/(\w+)\.dir/', str(path))[1]
        folder = {'redlock_uv': 'port/', 'redlock': '', 'redlock_site': ''}.get(target_name, 'src/')
        rooms[folder + source_name(path)] = sizes[str(path)]
    return rooms


def total(sizes, wanted):
    chosen = [size for name, size in sizes.items() if wanted(name)]
    return tuple(sum(column) for column in zip(*chosen))


CONFIG_API = ('src/c_api/errors.cpp', 'src/c_api/describe.cpp', 'src/c_api/configure.cpp', 'src/c_api/load.cpp')


def is_config(name):
    return name.startswith('src/config/') or name in CONFIG_API


def is_api(name):
    return not is_config(name) and name.startswith(('src/c_api/', 'src/run/'))


def is_core(name):
    return not is_config(name) and not is_api(name) and not is_site(name)


def is_site(name):
    return name.startswith('src/site/')  # no gateway has them: redlock_site, beside its copies of the rooms


# The files that serve one feature alone. What stands in shared files, as in master/session, is not in it.
FEATURES = {
    'the guard': 'src/master/(guard|session_guard|record|info|clock_watch)|src/client/(guarding|fleet)|'
                 'port/posix/boot_id',
    'waiting': 'src/lock/(machine_waiting|forecast|local_queue)|src/client/waiting|src/master/tracking',
    'URLs, and settings by calls': 'src/config/(url|config|keys|tls)|src/c_api/configure',
    'a configuration from JSON': 'src/config/(parse|parse_master|json_item|json_text|file)|src/c_api/load',
    'sentences': 'src/c_api/describe|src/run/(story|fault|detail)',
    'names and texts of all errors': 'src/c_api/errors',
    'Lua scripts': 'src/master/scripts',
    'deletes that are owed': 'src/client/(claims|deletes)',
    'a thread of its own, calls that block': 'src/run/(thread|blocked|report)|port/posix/gate|port/uv/own_loop',
    'one descriptor': 'src/run/polled',
    'tokens': 'src/lock/fence|src/client/fencing',
    'the status, also as JSON': 'src/config/report|src/client/status|src/c_api/see',
    'put-back of lost keys': 'src/client/holding',
}


def features(sizes):
    return {name: total(sizes, re.compile(f'({files})\\.cpp').fullmatch)[0] for name, files in FEATURES.items()}


def kept_of_archive(map_text, archive):
    """(text, data, bss) that a link with --gc-sections kept of an archive, from the linker's map."""
    sums = collections.Counter()
    joined = re.sub(r'\n( \.[^\s]+)\n', r'\n\1', map_text.split('Linker script and memory map')[1])
    section = r'^ (\.[^\s]+) +0x[0-9a-f]+ +0x([0-9a-f]+) [^\n]*' + re.escape(archive) + r'\('
    for line in re.finditer(section, joined, re.M):
        kind = line[1].split('.')[1]
        if kind in ('text', 'rodata', 'ARM', 'eh_frame'):
            sums['text'] += int(line[2], 16)
        elif kind in ('data', 'init_array', 'bss'):
            sums['bss' if kind == 'bss' else 'data'] += int(line[2], 16)
    return sums['text'], sums['data'], sums['bss']


def static_program(target, source, build, work):
    """What stays of the library in the gateway program, with libuv and cJSON shared."""
    archive = work / 'libredlock.a'
    archive.unlink(missing_ok=True)
    gateways = sorted(path for path in build.rglob('*.cpp.o') if not path.match('site/*'))
    run([tool(target, 'ar'), 'rcs', archive, *gateways])
    map_file = work / 'gateway.map'
    run([tool(target, 'gcc'), *target.options, '-Os', f'-I{source}/include', source / 'test/size/gateway.c',
         '-o', work / 'gateway', archive, '-luv', '-lcjson', '-fno-lto', '-Wl,--gc-sections', f'-Wl,-Map={map_file}'])
    return kept_of_archive(map_file.read_text(), 'libredlock.a')


def divisions(target, build):
    """What the compiler's library has brought along for divisions of 64 bits, which base/quotient.hpp spares us."""
    symbols = run([tool(target, 'nm'), build / 'libredlock.so']).split()
    return [symbol for symbol in symbols if re.fullmatch(r'__aeabi_u?ldivmod|__u?divmoddi4', symbol)]


def memory(target, source, build, work):
    run([tool(target, 'gcc'), *target.options, '-Os', f'-I{source}/include', source / 'test/size/memory.c',
         '-o', work / 'memory', build / 'libredlock.so', f'-Wl,-rpath,{build}'])
    lines = run([*target.emulator, work / 'memory']).splitlines()
    return {name: int(value) for name, value in map(str.split, lines)}


def musl_gateways(cmake, source, work):
    """The bytes of the stripped files, program and library optimised as a whole: one gets its masters as arguments, one
    from a JSON file. Nothing where musl or the libraries for it are missing."""
    compiler = shutil.which(f'{MUSL}-gcc', path=f"{os.environ['PATH']}:{source}/build/sysroot/armhf/usr/bin")
    if not (compiler and (source / 'build/dependencies' / MUSL / 'complete').exists()):
        return {}
    prefix = source / 'build/dependencies' / MUSL
    build = work / 'musl'
    configure_and_build(cmake, source, build, MUSL, 'OFF', '', '-DREDLOCK_LTO=ON',
                        '-DREDLOCK_BUILD_TOOL=ON', '-DCMAKE_EXE_LINKER_FLAGS=-static -s')
    sizes = {}
    for what, define in ('static musl gateway', 'URL'), ('static musl gateway with JSON', 'FILE'):
        program = build / f'by_{define}'
        run([compiler, '-static', '-s', '-Os', '-flto', '-flto-partition=one', f'-DMASTERS_BY_{define}',
             f'-I{source}/include', f'-I{prefix}/include', source / 'test/size/gateway.c', '-o', program,
             build / 'libredlock.a', f'-L{prefix}/lib', '-luv', '-lcjson', '-Wl,--gc-sections'])
        sizes[what] = program.stat().st_size
    run([cmake, '--build', build, '--target', 'redlock_tool', '--parallel', '2'])
    sizes['static musl redlock, above that gateway'] = (
        (build / 'redlock').stat().st_size - sizes['static musl gateway with JSON'])
    return sizes


# ---- stack -----------------------------------------------------------------------------------------------------------

class Calls:
    """Who calls whom and how much stack each function takes, as gcc recorded it (-fcallgraph-info=su). What is
    outside of the library counts nothing. A call through a pointer goes, from the ports, to the API's hooks; from the
    hooks that tell the user something, to a callback. That may call any function of the API but those that set up, and
    those that block or run the loop, which are refused there. Their own pointers lead to the hooks that wake a loop.
    Where a loop is run, libuv calls the ports."""

    SETUP = re.compile(r'redlock_(config_|create|memory_size|status_json)')
    BLOCKING = re.compile(r'redlock_(acquire|extend|release|destroy|process)$')
    API = re.compile('/src/(c_api|run|site)/')
    LISTENING = re.compile('/src/master/')
    HOOK = re.compile(r'(.*::)?(on_\w+|enter|leave|is_foreign|wake_\w+)( .*)?$')
    TELLING = re.compile(r'(.*::)?(tell\w*|log_\w+|on_(event|closed)\w*)$')

    def __init__(self, folder):
        self.frames, self.edges, self.names, self.files = {}, collections.defaultdict(set), {}, {}
        for path in folder.glob('*.ci'):  # one, of the library as it is linked
            for line in path.read_text().splitlines():
                self.read(line)
        called = set().union(*self.edges.values())
        self.roots = [f for f in self.frames if f not in called]
        self.hooks = [f for f in self.roots
                      if self.API.search(self.files[f]) and self.HOOK.match(self.names[f])]
        self.deepest = {}

    def read(self, line):
        node = re.match(r'node: \{ title: "([^"]*)" label: "([^"]*)"', line)
        edge = re.match(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', line)
        if edge:
            self.edges[edge[1]].add(edge[2])
        stack = node and re.search(r'\\n(\d+) bytes \(([\w,]+)\)', node[2])
        if stack:
            if stack[2] == 'dynamic':
                sys.exit(f'{node[2]}: the stack it takes is not bounded')
            self.frames[node[1]] = int(stack[1])
            self.names[node[1]] = re.sub(r'^.*?([\w:~{}]+)\(.*$', r'\1', node[2].split('\\n')[0])
            self.files[node[1]] = node[2].split('\\n')[1]

    def targets(self, function):
        """The functions that it may call, on this stack."""
        for target in self.edges[function]:
            if target == function and '/src/config/' in self.files[function]:
                continue  # walks a JSON tree: as deep as the file, counted once
            if target == 'uv_run':
                yield from (f for f in self.roots if '/port/uv/' in self.files[f])
            elif target != '__indirect_call':
                yield target
            elif self.LISTENING.search(self.files[function]):
                continue  # a listener, which only redlock_site has: no gateway
            elif not self.API.search(self.files[function]):
                yield from self.hooks
            elif self.TELLING.match(self.names[function]):
                yield from (f for f in self.roots if self.is_call(self.names[f]))
            else:
                yield from (f for f in self.hooks if 'wake' in self.names[f])

    def is_call(self, name):
        """Of the API, from a callback."""
        return name.startswith('redlock_') and not self.SETUP.match(name) and not self.BLOCKING.match(name)

    def depth(self, function, path=()):
        """(bytes, call chain) of the deepest stack below a function, itself included."""
        if function in path:
            sys.exit('recursion: ' + ' -> '.join(self.names[f] for f in (*path, function)))
        if function not in self.frames:
            return 0, ()
        if function not in self.deepest:
            below = max((self.depth(t, (*path, function)) for t in self.targets(function)), default=(0, ()))
            self.deepest[function] = self.frames[function] + below[0], (function, *below[1])
        return self.deepest[function]

    def of(self, wanted):
        return max((self.depth(f) for f in self.roots if wanted(self.names[f], self.files[f])), default=(0, ()))

    def chain(self, functions):
        return ' > '.join(f'{self.names[f]} {self.frames[f]}' for f in functions)


def stacks(build):
    calls = Calls(build)
    blocked = calls.of(lambda name, file: bool(calls.BLOCKING.match(name)))
    api = calls.of(lambda name, file: calls.is_call(name))
    loop = calls.of(lambda name, file: '/port/uv/' in file)  # with what callbacks call
    return {
        'lock path': max(api[0], loop[0], blocked[0]),
        'of the loop': loop[0],
        'of a call': api[0],
        'of a blocking call': blocked[0],
        'set up and status': calls.of(lambda name, file: bool(calls.SETUP.match(name)))[0],
        'chains': [f'loop: {calls.chain(loop[1])}', f'call: {calls.chain(api[1])}'],
    }


# ---- the table -------------------------------------------------------------------------------------------------------

def measure(cmake, source, work, target):
    build = work / target.name
    configure_and_build(cmake, source, build, target.triplet, 'ON', '-fcallgraph-info=su')
    return {
        'objects': objects(target, build),
        'shared': berkeley(target, [build / 'libredlock.so'])[str(build / 'libredlock.so')],
        'static': static_program(target, source, build, build),
        'divisions': divisions(target, build),
        'memory': memory(target, source, build, build),
        'stack': stacks(build),
    }


def print_table(measured, musl):
    names = list(measured)
    print(f"{'bytes':44}" + ''.join(f'{name:>24}' for name in names))
    print(f"{'':44}" + ''.join(f"{'text':>10}{'data':>7}{'bss':>7}" for _ in names))

    def row(label, sizes):
        print(f'{label:44}' + ''.join(f'{size[0]:>10}{size[1]:>7}{size[2]:>7}' for size in sizes))

    for source in sorted(measured[names[0]]['objects']):
        row(source, [measured[name]['objects'].get(source, (0, 0, 0)) for name in names])
    parts = {'core and ports': is_core, 'configuration and texts': is_config, 'C API': is_api,
             'all objects': lambda f: not is_site(f), 'redlock_site, its own objects': is_site}
    for label, wanted in parts.items():
        row(label, [total(measured[name]['objects'], wanted) for name in names])
    row('libredlock.so', [measured[name]['shared'] for name in names])
    row('static, in the gateway program', [measured[name]['static'] for name in names])

    def line(label, values):
        print(f'{label:44}' + ''.join(f'{value:>24}' for value in values))

    for label, key in (('RAM 5 masters, 32 locks', 'usual'), ('RAM of one more master', 'master'),
                       ('RAM of one more lock', 'lock'), ('RAM 3 masters, 1 lock, least limits', 'least')):
        line(label, [measured[name]['memory'][key] for name in names])
    for key in ('lock path', 'of the loop', 'of a call', 'of a blocking call', 'set up and status'):
        line('stack ' + key, [measured[name]['stack'][key] for name in names])
    weights = [features(measured[name]['objects']) for name in names]
    for feature in FEATURES:
        line('text of ' + feature, [weight[feature] for weight in weights])
    for name in names:
        for chain in measured[name]['stack']['chains']:
            print(f'deepest on {name}, {chain}')
    for what, size in musl.items():
        print(f'{what}, the whole file: {size}')
    if not musl:
        print('static musl gateway: not measured, no musl here')


def main():
    source, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    cmake = sys.argv[3] if len(sys.argv) > 3 else 'cmake'
    measured = {}
    for target in [with_root(target, source) for target in TARGETS]:
        lack = missing(target, work)
        if lack:
            print(f'{target.name}: not measured, {lack} here')
        else:
            measured[target.name] = measure(cmake, source, work, target)
    musl = musl_gateways(cmake, source, work)
    print_table(measured, musl)

    return judge(measured['armhf'], musl) if 'armhf' in measured else 0


def judge(here, musl):
    missed = 0
    for budget in BUDGETS:
        value = {
            'text core and ports': total(here['objects'], is_core)[0],
            'text whole library': here['shared'][0],
            'RAM 5 masters, 32 locks': here['memory']['usual'],
            'RAM 3 masters, 1 lock': here['memory']['least'],
            'stack lock path': here['stack']['lock path'],
            **musl,
        }.get(budget.what)
        if value is None:
            continue
        missed += value > budget.limit
        verdict = 'TOO MUCH' if value > budget.limit else 'as wanted' if value <= budget.goal else 'accepted'
        print(f'{budget.what} on armhf: {value}, goal {budget.goal}, limit {budget.limit}: {verdict}')
    for symbol in here['divisions']:
        print(f'{symbol} on armhf: a division of 64 bits that is not base/quotient.hpp\'s')
    return 1 if missed or here['divisions'] else 0


if __name__ == '__main__':
    sys.exit(main())
