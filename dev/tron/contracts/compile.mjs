// SPDX-License-Identifier: Apache-2.0
// Compiles the development chain's contracts.
//   node compile.mjs write DIR    writes NAME.json beside the sources
//   node compile.mjs verify DIR   fails unless the committed NAME.json are what the sources give
// DIR is where npm put the two compilers under the names solc-old and solc-new
// (see the Makefile, which pins their releases).
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const [mode, dir] = process.argv.slice(2);
if (!['write', 'verify'].includes(mode) || !dir) {
  console.error('usage: node compile.mjs write|verify DIR');
  process.exit(2);
}
const require = createRequire(path.join(path.resolve(dir), 'node_modules', 'x.js'));
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);

// paris is the newest target every TRON virtual machine in use accepts.
const jobs = [
  { name: 'USDT', solc: 'solc-old', optimizer: false },
  { name: 'USDC', solc: 'solc-new', optimizer: true, evmVersion: 'paris' },
  { name: 'Probe', solc: 'solc-new', optimizer: true, evmVersion: 'paris' },
];

function compile({ name, solc, optimizer, evmVersion }) {
  const compiler = require(solc);
  const file = name + '.sol';
  const input = {
    language: 'Solidity',
    sources: { [file]: { content: fs.readFileSync(path.join(here, file), 'utf8') } },
    settings: {
      optimizer: { enabled: optimizer, runs: 200 },
      outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
      ...(evmVersion ? { evmVersion } : {}),
    },
  };
  const run = compiler.compileStandardWrapper ?? compiler.compile;
  const out = JSON.parse(run.call(compiler, JSON.stringify(input)));
  const errors = (out.errors ?? []).filter((e) => e.severity === 'error');
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join('\n'));
  const { abi, evm } = out.contracts[file][name];
  return JSON.stringify({ contract: name, compiler: compiler.version(), optimizer, abi, bytecode: evm.bytecode.object }, null, 1) + '\n';
}

let stale = 0;
for (const job of jobs) {
  const target = path.join(here, job.name + '.json');
  const text = compile(job);
  if (mode === 'write') {
    fs.writeFileSync(target, text);
    console.log('wrote', path.basename(target));
  } else if (fs.readFileSync(target, 'utf8') === text) {
    console.log('same', path.basename(target));
  } else {
    console.error('DIFFERENT', path.basename(target));
    stale++;
  }
}
process.exit(stale > 0 ? 1 : 0);
