#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a gateway's line carries while nothing happens: bytes_a_day.py BUILD [SECONDS]

An idle client, a holder (ttl 10 s), a client that waits for its lock, and a job (`redlock run` in a new process) have a
network namespace each, and a veth pair to the namespace of five redis-servers. Its counters give the bytes of IP in
both directions, scaled to a day. Needs root and the programs ip and redis-server; with a BUILD that knows TLS, also
openssl, and its rows are over TLS. BUILD is a folder with libredlock.so and redlock.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv[1]).resolve()
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 120
NAME = f"redlock{os.getpid()}"
ETHERNET = 14  # bytes of each packet that the line of a modem does not have
DAY = 86_400
IDLE = "import libredlock,sys,time\nclient=libredlock.Client(sys.argv[1])\ntime.sleep(float(sys.argv[2]))"
ENVIRONMENT = dict(os.environ, LD_LIBRARY_PATH=str(BUILD), LIBREDLOCK=str(BUILD / "libredlock.so"),
                   PYTHONPATH=str(SOURCE / "src/python"))


def run(line, **options):
    return subprocess.run(line.split(), check=True, capture_output=True, text=True, **options).stdout


class Client:
    """A client's namespace, its pair of interfaces and its configuration."""
    count = 0
    tls = False

    def __init__(self, folder, what, masters, behind=None, **timing):
        Client.count += 1
        self.what, self.masters, self.name = what, masters, f"{NAME}c{Client.count}"
        outside, near, far = f"r{os.getpid()}v{Client.count}", f"10.77.{Client.count}.2", f"10.77.{Client.count}.1"
        run(f"ip netns add {self.name}")
        run(f"ip -n {NAME} link add {outside} type veth peer name line netns {self.name}")
        for space, interface, address in (NAME, outside, far), (self.name, "line", near):
            run(f"ip netns exec {space} sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1")
            run(f"ip -n {space} address add {address}/30 dev {interface}")
            run(f"ip -n {space} link set {interface} up")
        self.config = os.path.join(folder, f"{self.name}.json")
        scheme, port = ("rediss", 7401) if Client.tls else ("redis", 6401)
        tls = {"tls": {"ca_file": f"{folder}/cert.pem", "server_name": "master"}} if Client.tls else {}
        with open(self.config, "w", encoding="utf-8") as file:
            self.prefix = behind.prefix if behind else f"c{Client.count}"
            json.dump(tls | {"client_name": f"gw-{Client.count}", "key_prefix": self.prefix, "timing": timing,
                             "defaults": {"ttl_ms": min(10_000, timing.get("max_ttl_ms", 10_000))},
                             "masters": [{"name": f"m{m}", "url": f"{scheme}://{far}:{port + m}"}
                                         for m in range(masters)]}, file)
        if behind:
            return
        assert self.inside("redlock", "commission", "-C", self.config, "--yes").wait() == 0, "no commission"

    def inside(self, program, *words):
        line = [str(BUILD / program) if program == "redlock" else program, *words]
        return subprocess.Popen(["ip", "netns", "exec", self.name, *line], env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)

    def carried(self):
        counters = [int(run(f"ip netns exec {self.name} cat /sys/class/net/line/statistics/{what}"))
                    for what in ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets")]
        packets = counters[2] + counters[3]
        return counters[0] + counters[1] - ETHERNET * packets, packets


def measure(folder):
    clients = [Client(folder, what, masters, **timing) for what, masters, timing in (
        ("idle", 5, {}), ("idle", 3, {}), ("idle, max_ttl_ms 3000", 5, {"max_ttl_ms": 3_000}),
        ("idle, max_ttl_ms 300000, ping_interval_ms 60000", 3, {"max_ttl_ms": 300_000, "ping_interval_ms": 60_000}),
        ("one lock held", 3, {}), ("one lock held", 5, {}))]
    programs = [client.inside(sys.executable, "-c", IDLE, client.config, str(SECONDS + 60))
                if client.what.startswith("idle") else
                client.inside("redlock", "run", "-C", client.config, "bus", "--", "sleep", str(SECONDS + 60))
                for client in clients]
    time.sleep(2)
    clients.append(Client(folder, "waits behind that lock", 5, clients[-1]))
    programs.append(clients[-1].inside("redlock", "run", "-C", clients[-1].config, "bus", "--", "true"))
    time.sleep(5)
    began, before = time.monotonic(), [client.carried() for client in clients]
    time.sleep(SECONDS)
    after, took = [client.carried() for client in clients], time.monotonic() - began
    print("| client | masters | MB a day | packets a day |\n|---|---|---|---|")
    for client, first, last, program in zip(clients, before, after, programs):
        assert program.poll() is None, f"{client.what}: its program has ended"
        size, packets = (DAY / took * (b - a) for a, b in zip(first, last))
        print(f"| {client.what} | {client.masters} | {size / 1e6:.1f} | {packets:,.0f} |")
        program.terminate()
        program.wait()
    job = Client(folder, "job", 3)
    time.sleep(1)
    first = job.carried()[0]
    assert job.inside("redlock", "run", "-C", job.config, "bus", "--", "true").wait() == 0
    time.sleep(1)
    print(f"one `redlock run` in a new process, three masters: {job.carried()[0] - first} bytes")


def main():
    servers = []
    run(f"ip netns add {NAME}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            run(f"ip -n {NAME} link set lo up")
            Client.tls = "+" in run(f"{BUILD}/redlock version", env=ENVIRONMENT)
            if Client.tls:
                run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
                    "-subj /CN=master -addext subjectAltName=DNS:master "
                    f"-keyout {folder}/key.pem -out {folder}/cert.pem")
            for m in range(5):
                line = (f"ip netns exec {NAME} redis-server --port {6401 + m} --bind 0.0.0.0 --protected-mode no "
                        f"--dir {folder}").split() + ["--save", ""]
                if Client.tls:
                    line += (f"--tls-port {7401 + m} --tls-cert-file {folder}/cert.pem --tls-key-file {folder}/key.pem "
                             f"--tls-ca-cert-file {folder}/cert.pem --tls-auth-clients no").split()
                servers.append(subprocess.Popen(line, stdout=subprocess.DEVNULL))
            time.sleep(1)
            measure(folder)
    finally:
        for server in servers:
            server.send_signal(signal.SIGTERM)
            server.wait()
        for i in range(1, Client.count + 1):
            subprocess.run(["ip", "netns", "del", f"{NAME}c{i}"], check=False)
        subprocess.run(["ip", "netns", "del", NAME], check=False)


main()
