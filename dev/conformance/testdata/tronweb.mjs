// SPDX-License-Identifier: Apache-2.0
// tronweb as another wallet uses it: signs, builds and sends transactions of several signers.
//   node tronweb.mjs DIR HTTP-URL COMMAND
// DIR is where npm put tronweb. The arguments are JSON on the input, the answer is JSON on the output.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import fs from 'node:fs';
import path from 'node:path';

const [dir, host, command] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(dir), 'node_modules', 'x.js'));
const { TronWeb, utils } = await import(pathToFileURL(require.resolve('tronweb')));
const given = JSON.parse(fs.readFileSync(0, 'utf8'));
const tw = new TronWeb({ fullHost: host });

// shown is a transaction in tronweb's form, read from its bytes alone.
function shown() {
  const { contract, ...rest } = utils.deserializeTx.deserializeTransaction(given.type, given.raw);
  const tx = { visible: false, raw_data: { contract, ...rest }, raw_data_hex: given.raw };
  tx.txID = utils.transaction.txPbToTxID(utils.transaction.txJsonToPb(tx)).replace(/^0x/, '');
  if (given.signatures?.length) tx.signature = given.signatures;
  return tx;
}

const commands = {
  async sign() {
    let tx = shown();
    for (const key of given.keys) tx = await tw.trx.multiSign(tx, key, given.permission);
    return { id: tx.txID, signatures: tx.signature };
  },
  async build() {
    let tx = await tw.transactionBuilder.sendTrx(given.to, given.amount, given.from, { permissionId: given.permission });
    tx = await tw.transactionBuilder.extendExpiration(tx, 3600, { txLocal: true });
    return { id: tx.txID, raw: tx.raw_data_hex };
  },
  async update() {
    const tx = await tw.transactionBuilder.updateAccountPermissions(given.from, given.owner, undefined, given.actives);
    return { id: tx.txID, raw: tx.raw_data_hex };
  },
  async permissions() {
    const account = await tw.trx.getAccount(given.account);
    return { owner: account.owner_permission, actives: account.active_permission, witness: account.witness_permission !== undefined };
  },
  async send() {
    return tw.trx.sendRawTransaction(shown());
  },
};
console.log(JSON.stringify(await commands[command]()));
