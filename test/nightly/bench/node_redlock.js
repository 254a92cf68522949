// SPDX-License-Identifier: MIT
//
// What cycle_bench --mode contend does, by node-redlock over ioredis, with its own pauses but without an end of its
// tries: hold the resource, pause, ask for it again. Takes the same options, writes the same log, prints a line of
// JSON. The packages are in the folder REDLOCK_NODE_MODULES (test/integration/interop/packages.sh).
'use strict';
const fs = require('fs');
const path = require('path');
const { parseArgs } = require('util');

const text = { type: 'string' };
const names = ['ports', 'count', 'hold-us', 'think-us', 'log', 'gate', 'mode', 'warmup'];
const o = parseArgs({ options: Object.fromEntries(names.map((name) => [name, text])) }).values;
const load = (name) => require(path.join(process.env.REDLOCK_NODE_MODULES, name));
const Redis = load('ioredis');
const Redlock = load('redlock-5').default;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function main() {
  const masters = o.ports.split(',').map((port) => new Redis(Number(port), '127.0.0.1'));
  await Promise.all(masters.map((master) => master.ping()));
  const redlock = new Redlock(masters, { retryCount: -1 });
  redlock.on('error', () => {});
  if (o.gate) {
    const [ready, go] = o.gate.split(',').map(Number);
    fs.writeSync(ready, 'r');
    fs.readSync(go, Buffer.alloc(1));  // until the other end is closed
  }
  const lines = [];
  for (let i = 0; i < Number(o.count); ++i) {
    const want = process.hrtime.bigint();
    const lock = await redlock.acquire(['bench'], 10000);
    const got = process.hrtime.bigint();
    await sleep(Number(o['hold-us']) / 1000);
    const released = process.hrtime.bigint();
    await redlock.release(lock);
    lines.push([process.pid, want, got, released, process.hrtime.bigint(), lock.attempts.length].join(' '));
    await sleep(Number(o['think-us']) / 1000);
  }
  if (o.log) fs.writeFileSync(o.log, lines.join('\n') + '\n');
  console.log(JSON.stringify({ ok: Number(o.count) }));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
