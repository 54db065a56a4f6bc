// SPDX-License-Identifier: Apache-2.0
// Drives a running development node with tronweb, a client that is not ours:
//   node e2e.mjs http://HTTP-ADDRESS http://CONTROL-ADDRESS DIR
// DIR is where npm put tronweb. `make conformance` does it all.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import fs from 'node:fs';
import path from 'node:path';

const [host, control, dir] = process.argv.slice(2);
if (!host || !control || !dir) {
  console.error('usage: node e2e.mjs HTTP-URL CONTROL-URL DIR');
  process.exit(2);
}
const require = createRequire(path.join(path.resolve(dir), 'node_modules', 'x.js'));
const { TronWeb, utils } = await import(pathToFileURL(require.resolve('tronweb')));
const here = import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname);
const artefact = (name) => JSON.parse(fs.readFileSync(path.join(here, '..', 'contracts', name + '.json')));

let failures = 0;
function check(name, good, detail = '') {
  if (!good) failures++;
  console.log(good ? 'pass' : 'FAIL', name, detail);
}
async function post(route, body = {}) {
  const r = await fetch(control + route, { method: 'POST', body: JSON.stringify(body) });
  const out = await r.json();
  if (!r.ok) throw new Error(`${route}: ${out.error}`);
  return out;
}
const state = await (await fetch(control + '/state')).json();
await post('/pause'); // this script makes the blocks
const mine = (blocks = 1) => post('/produce', { blocks });

// Fresh accounts each time, so that the script can run twice on one chain.
const people = [0, 1, 2, 3].map(() => utils.accounts.generateAccount());
const [alice, bob, carol, dave] = people.map((p) => ({ address: p.address.base58, key: p.privateKey }));
for (const p of [alice, bob, carol]) await post('/fund', { address: p.address, token: 'TRX', amount: '5000000000' });
await post('/fund', { address: alice.address, token: 'USDT', amount: '1000000' });
await mine();

const tw = new TronWeb({ fullHost: host, privateKey: alice.key });
async function send(signed) {
  const answer = await tw.trx.sendRawTransaction(signed);
  if (answer.result !== true) throw new Error(`refused: ${JSON.stringify(answer)}`);
  await mine();
  return tw.trx.getUnconfirmedTransactionInfo(signed.txID);
}
const sign = (tx) => tw.trx.sign(tx);

check('balance', (await tw.trx.getUnconfirmedBalance(alice.address)) === 5_000_000_000);

{
  const tx = await tw.transactionBuilder.sendTrx(bob.address, 1_234_567, alice.address);
  const info = await send(await sign(tx));
  check('TRX transfer', info.id === tx.txID && (await tw.trx.getUnconfirmedBalance(bob.address)) === 5_001_234_567);
}

{
  const shown = await (await fetch(host + '/wallet/getaccount', { method: 'POST', body: JSON.stringify({ address: alice.address, visible: true }) })).json();
  check('visible addresses', shown.address === alice.address && shown.owner_permission.keys[0].address === alice.address);
}

const usdt = await tw.contract(artefact('USDT').abi, state.usdt);
check('constant call', (await usdt.balanceOf(alice.address).call()).toString() === '1000000');
check('token metadata', (await usdt.symbol().call()) === 'USDT' && Number(await usdt.decimals().call()) === 6);

{
  const probe = artefact('Probe');
  const tx = await tw.transactionBuilder.createSmartContract(
    { abi: probe.abi, bytecode: probe.bytecode, feeLimit: 1e9, callValue: 0, userFeePercentage: 100, originEnergyLimit: 1e7, name: 'Probe' },
    alice.address,
  );
  const info = await send(await sign(tx));
  check('deploy at the predicted address', info.contract_address === tx.contract_address && info.receipt.result === 'SUCCESS');
}

const transferArgs = (to, value) => [{ type: 'address', value: to }, { type: 'uint256', value }];
const transfer = 'transfer(address,uint256)';
{
  const blockHeader = await tw.trx.getCurrentRefBlockParams();
  const built = await tw.transactionBuilder.triggerSmartContract(
    state.usdt, transfer, { feeLimit: 5e7, txLocal: true, blockHeader }, transferArgs(bob.address, 77), alice.address);
  const info = await send(await sign(built.transaction));
  check('TRC-20 transfer built locally', info.receipt.result === 'SUCCESS' && info.log[0].address.length === 40, info.receipt.energy_usage_total);
}
{
  const simulated = await tw.transactionBuilder.triggerConstantContract(state.usdt, transfer, {}, transferArgs(bob.address, 5), alice.address);
  check('logs of a simulation', simulated.logs?.length === 1 && simulated.logs[0].topics.length === 3);
  const latest = await tw.event.getEventsOfLatestBlock();
  const [event] = latest.data;
  check('events of the newest block', latest.data.length === 1 && event.event_name === 'Transfer' && event.result.value === '77' && event.contract_address === state.usdt);
  const byTransaction = await tw.event.getEventsByTransactionID(event.transaction_id);
  const byBlock = await tw.event.getEventsByBlockNumber(event.block_number);
  check('events of a transaction and of a block', byTransaction.data.length === 1 && byBlock.data.length === 1 && byBlock.data[0].transaction_id === event.transaction_id);
  const first = await tw.event.getEventsByContractAddress(state.usdt, { eventName: 'Transfer', limit: 1, orderBy: 'block_timestamp,asc' });
  const next = await tw.event.getEventsByContractAddress(state.usdt, { eventName: 'Transfer', limit: 1, orderBy: 'block_timestamp,asc', fingerprint: first.meta.fingerprint });
  check('events of a contract, page by page', first.data[0].result.value === '1000000' && next.data[0].result.value === '77', first.meta.fingerprint);
  const final = await tw.event.getEventsByContractAddress(state.usdt, { onlyConfirmed: true });
  check('no event is confirmed yet', final.success && final.data.length === 0);
}
{
  // tronweb compares the node's bytes with the arguments before it returns them.
  const built = await tw.transactionBuilder.triggerSmartContract(state.usdt, transfer, { feeLimit: 5e7 }, transferArgs(bob.address, 78), alice.address);
  const info = await send(await sign(built.transaction));
  check('TRC-20 transfer built by the node', info.receipt.result === 'SUCCESS');
  check('a success answers a zero word', /^0{64}$/.test(info.contractResult[0]));
  check('token balance', (await usdt.balanceOf(bob.address).call()).toString() === '155');
}
{
  const e = await tw.transactionBuilder.estimateEnergy(state.usdt, transfer, {}, transferArgs(bob.address, 1), alice.address);
  check('estimateEnergy', e.energy_required > 14_000 && e.energy_required < 15_000, e.energy_required);
}
{
  const built = await tw.transactionBuilder.triggerSmartContract(state.usdt, transfer, { feeLimit: 5e7 }, transferArgs(bob.address, '99999999999'), alice.address);
  const info = await send(await sign(built.transaction));
  check('REVERT', info.result === 'FAILED' && info.receipt.result === 'REVERT');
}

{
  // What a wallet does with its stake.
  await send(await sign(await tw.transactionBuilder.freezeBalanceV2(100_000_000, 'ENERGY', alice.address)));
  await send(await sign(await tw.transactionBuilder.delegateResource(40_000_000, bob.address, 'ENERGY', alice.address)));
  const most = await tw.trx.getCanDelegatedMaxSize(alice.address, 'ENERGY', { confirmed: false });
  check('what is left to lend', most.max_size > 0 && most.max_size <= 60_000_000, most.max_size);
  const lent = await tw.trx.getDelegatedResourceV2(alice.address, bob.address, { confirmed: false });
  check('what is lent', lent.delegatedResource?.[0]?.frozen_balance_for_energy === 40_000_000, JSON.stringify(lent));
  const index = await tw.trx.getDelegatedResourceAccountIndexV2(alice.address, { confirmed: false });
  check('to whom it is lent', index.toAccounts?.length === 1 && index.toAccounts[0] === TronWeb.address.toHex(bob.address), JSON.stringify(index));
  await send(await sign(await tw.transactionBuilder.undelegateResource(40_000_000, bob.address, 'ENERGY', alice.address)));
  await send(await sign(await tw.transactionBuilder.unfreezeBalanceV2(10_000_000, 'ENERGY', alice.address)));
  const left = await tw.trx.getAvailableUnfreezeCount(alice.address, { confirmed: false });
  const later = await tw.trx.getCanWithdrawUnfreezeAmount(alice.address, Date.now() + 30 * 86_400_000, { confirmed: false });
  check('what waits to be withdrawn', left.count === 31 && later.amount === 10_000_000, JSON.stringify([left, later]));
  const cancelled = await send(await sign(await tw.transactionBuilder.cancelUnfreezeBalanceV2(alice.address)));
  check('unstaking is cancelled', cancelled.cancel_unfreezeV2_amount?.some((a) => a.key === 'ENERGY' && a.value === 10_000_000), JSON.stringify(cancelled));
}
{
  const [energy, bandwidth, nodes, chain] = [await tw.trx.getEnergyPrices(), await tw.trx.getBandwidthPrices(), await tw.trx.listSuperRepresentatives(), await tw.trx.getChainParameters()];
  check('prices, witnesses, parameters', energy.endsWith(':100') && bandwidth.endsWith(':1000') && nodes.length === 27 && chain.length > 10);
  check('bandwidth', (await tw.trx.getBandwidth(bob.address)) > 0);
}

const permission = (type, id, permission_name, extra = {}) => ({
  type, id, permission_name, threshold: 2,
  keys: [alice, bob, carol].map((p) => ({ address: TronWeb.address.toHex(p.address), weight: 1 })), ...extra,
});
{
  const operations = '02000080'.padEnd(64, '0');
  const tx = await tw.transactionBuilder.updateAccountPermissions(
    alice.address, permission(0, 0, 'owner'), undefined, [permission(2, 2, 'treasury', { operations })]);
  const info = await send(await sign(tx));
  check('permission update', info.fee >= 100_000_000, info.fee);
}
{
  let tx = await tw.transactionBuilder.sendTrx(dave.address, 5, alice.address, { permissionId: 2 });
  tx = await tw.transactionBuilder.extendExpiration(tx, 3600, { txLocal: true });
  const one = await tw.trx.multiSign(tx, carol.key, 2);
  let weight = await tw.trx.getSignWeight(one);
  check('sign weight of one', weight.current_weight === 1 && weight.result.code === 'NOT_ENOUGH_PERMISSION');
  const refused = await tw.trx.sendRawTransaction(one);
  check('one of two is refused', refused.code === 'SIGERROR');
  const two = await tw.trx.multiSign(one, bob.key, 2);
  weight = await tw.trx.getSignWeight(two);
  const approved = await tw.trx.getApprovedList(two);
  check('sign weight of two', weight.current_weight === 2 && approved.approved_list.length === 2, JSON.stringify(weight.result));
  const info = await send(two);
  check('multi-signature transfer', info.id === two.txID && info.fee >= 1_000_000, info.fee);
  const again = await tw.trx.sendRawTransaction(two);
  check('DUP', again.code === 'DUP_TRANSACTION_ERROR');
  check('not final yet', !(await tw.trx.getTransactionInfo(two.txID)).id);
  await mine(18);
  check('final after 18 more blocks', (await tw.trx.getTransactionInfo(two.txID)).id === two.txID);
}
{
  // Without a permission in it, tronweb asks the node for the transaction under the permission, and compares the answer.
  const tx = await tw.transactionBuilder.sendTrx(dave.address, 6, alice.address);
  const wrong = await tw.trx.multiSign(tx, dave.key, 2).then(() => 'signed', (e) => String(e.message ?? e));
  check('a key that is no owner is refused', wrong.includes('no permission to sign'), wrong);
  const one = await tw.trx.multiSign(tx, carol.key, 2);
  check('the permission is set by the node', one.raw_data.contract[0].Permission_id === 2 && one.txID !== tx.txID);
  const twice = await tw.trx.multiSign({ ...tx, signature: one.signature }, carol.key, 2).then(() => 'signed', (e) => String(e.message ?? e));
  check('an owner who has signed is refused', twice.includes('already sign'), twice);
  const info = await send(await tw.trx.multiSign(one, bob.key, 2));
  check('a transfer that multiSign prepared', info.receipt && info.fee >= 1_000_000, info.fee);
}
{
  const block = await tw.trx.getCurrentBlock();
  const byNumber = await tw.trx.getBlock(block.block_header.raw_data.number);
  check('blocks', block.blockID === byNumber.blockID);
}
await post('/resume');
console.log(failures === 0 ? 'all passed' : failures + ' failed');
process.exit(failures === 0 ? 0 : 1);
