// SPDX-License-Identifier: Apache-2.0
// Compiles the contracts of a development chain.
//   node compile.mjs write DIR [SOURCES]    writes NAME.json beside the sources
//   node compile.mjs verify DIR [SOURCES]   fails unless the committed NAME.json are what the sources give
// DIR is where npm put the two compilers under the names solc-old and solc-new
// (see the Makefile, which pins their releases). SOURCES is the folder of the
// sources and of jobs.json, which says how each is compiled; this one unless given.
import { createRequire } from 'node:module';
import fs from 'node:fs';
import path from 'node:path';

const [mode, dir, sources] = process.argv.slice(2);
if (!['write', 'verify'].includes(mode) || !dir) {
  console.error('usage: node compile.mjs write|verify DIR [SOURCES]');
  process.exit(2);
}
const require = createRequire(path.join(path.resolve(dir), 'node_modules', 'x.js'));
const here = sources ? path.resolve(sources) : import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);

// A job's evmVersion is paris at most: the newest target that every virtual machine in use accepts.
const jobs = JSON.parse(fs.readFileSync(path.join(here, 'jobs.json'), 'utf8'));

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
