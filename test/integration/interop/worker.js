// SPDX-License-Identifier: MIT
//
// worker.js MAJOR PORT...: node-redlock over ioredis, in the words of foreign.hpp. The packages are in the folder
// REDLOCK_NODE_MODULES.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

const [major, ...ports] = process.argv.slice(2);
const folder = process.env.REDLOCK_NODE_MODULES;
const Redis = require(path.join(folder, 'ioredis'));
const exported = require(path.join(folder, `redlock-${major}`));
const Redlock = exported.default || exported;

const masters = ports.map((port) => new Redis(Number(port), '127.0.0.1', { enableReadyCheck: true }));
masters.forEach((master) => master.on('error', () => {}));  // a master that restarts is a part of the tests
const once = new Redlock(masters, { retryCount: 0 });
const patient = new Redlock(masters);  // with the pauses that its users have
[once, patient].forEach((redlock) => redlock.on(major === '4' ? 'clientError' : 'error', () => {}));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let held = null;

// The marker is made and removed while the lock is held: if it is there already, somebody else holds the lock, too.
async function turn(lock, holdMs, marker, turns) {
  let alone = true;
  try {
    fs.closeSync(fs.openSync(marker, 'wx'));
  } catch (error) {
    alone = false;
  }
  fs.appendFileSync(turns, alone ? major : '!');
  await sleep(holdMs);
  if (alone) fs.unlinkSync(marker);
  await patient.release(lock).catch(() => {});  // over meanwhile
}

async function contend(key, ttlMs, holdMs, pauseMs, marker, turns, stop) {
  while (!fs.existsSync(stop)) {
    const lock = await patient.acquire([key], ttlMs).catch(() => null);
    if (lock !== null) await turn(lock, holdMs, marker, turns);
    await sleep(pauseMs);
  }
}

const commands = {
  acquire: async (key, ttlMs) => { held = await once.acquire([key], Number(ttlMs)); },
  extend: async (ttlMs) => {
    held.expiration = Date.now() + 60000;  // an expired lock is refused without asking the masters
    held = await once.extend(held, Number(ttlMs));
  },
  release: () => once.release(held),
  contend: (key, ttlMs, holdMs, pauseMs, marker, turns, stop) =>
    contend(key, Number(ttlMs), Number(holdMs), Number(pauseMs), marker, turns, stop),
};

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...args] = line.split(' ');
    const answer = await commands[command](...args).then(() => 'yes', (error) => `no: ${error.message}`);
    process.stdout.write(`${answer}\n`);
  }
  process.exit(0);
})();
