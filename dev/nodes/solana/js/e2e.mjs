// SPDX-License-Identifier: Apache-2.0
// Drives a running development node with clients that are not ours: @solana/web3.js,
// which checks every answer against a schema, @solana/spl-token and @solana/kit.
//   node e2e.mjs http://RPC-ADDRESS ws://WS-ADDRESS DIR
// DIR is where npm put the packages. The node needs the token programs and slots that run.
import { createRequire } from 'node:module';
import path from 'node:path';

const [url, ws, dir] = process.argv.slice(2);
if (!url || !ws || !dir) {
  console.error('usage: node e2e.mjs RPC-URL WS-URL DIR');
  process.exit(2);
}
const require = createRequire(path.join(path.resolve(dir), 'node_modules', 'x.js'));
const web3 = require('@solana/web3.js');
const spl = require('@solana/spl-token');
const kit = require('@solana/kit');

let failures = 0;
function check(name, good, detail = '') {
  if (!good) failures++;
  console.log(good ? 'pass' : 'FAIL', name, good ? '' : detail);
}
async function refused(name, work, pattern) {
  try {
    await work();
    check(name, false, 'was accepted');
  } catch (error) {
    const text = `${error?.message ?? error} ${(error?.logs ?? []).join(' ')}`;
    check(name, pattern.test(text), text);
  }
}

const options = { commitment: 'confirmed', maxSupportedTransactionVersion: 0 };
const connection = new web3.Connection(url, { commitment: 'confirmed', wsEndpoint: ws });
const [payer, alice, bob] = [0, 1, 2].map(() => web3.Keypair.generate());
const SOL = web3.LAMPORTS_PER_SOL;

const airdrop = await connection.requestAirdrop(payer.publicKey, 5 * SOL);
const latest = await connection.getLatestBlockhash();
const confirmed = await connection.confirmTransaction({ signature: airdrop, ...latest });
check('airdrop over the websocket', confirmed.value.err === null);
check('balance', (await connection.getBalance(payer.publicKey)) === 5 * SOL);

// A mint of the client's own, and what becomes of it.
const mint = await spl.createMint(connection, payer, payer.publicKey, payer.publicKey, 6);
const from = await spl.getOrCreateAssociatedTokenAccount(connection, payer, mint, alice.publicKey);
const to = await spl.getOrCreateAssociatedTokenAccount(connection, payer, mint, bob.publicKey);
await spl.mintTo(connection, payer, mint, from.address, payer, 1_000_000n);
const paid = await spl.transferChecked(connection, payer, from.address, mint, to.address, alice, 250_000n, 6);
check('token account', (await spl.getAccount(connection, to.address)).amount === 250_000n);
check('mint', (await spl.getMint(connection, mint)).supply === 1_000_000n);
const shown = await connection.getTransaction(paid, options);
check('transaction', shown.meta.err === null && shown.meta.postTokenBalances.length === 2);
const parsed = await connection.getParsedTransaction(paid, options);
check('parsed transaction', parsed.transaction.message.instructions[0].parsed.type === 'transferChecked');
check('signatures of an address', (await connection.getSignaturesForAddress(to.address)).some((s) => s.signature === paid));
const owned = await connection.getParsedTokenAccountsByOwner(bob.publicKey, { mint });
check('parsed token accounts', owned.value[0].account.data.parsed.info.tokenAmount.uiAmount === 0.25);
check('block', (await connection.getBlock(shown.slot, options)).transactions.length >= 1);
check('parsed block', (await connection.getParsedBlock(shown.slot, options)).transactions.length >= 1);
check('block signatures', (await connection.getBlockSignatures(shown.slot, 'confirmed')).signatures.includes(paid));
check('program accounts', (await connection.getParsedProgramAccounts(spl.TOKEN_PROGRAM_ID, { filters: [{ dataSize: 165 }, { memcmp: { offset: 0, bytes: mint.toBase58() } }] })).length === 2);

// What the program refuses is told in the words that clients know.
await refused('too much', () => spl.transferChecked(connection, payer, to.address, mint, from.address, bob, 9_000_000n, 6), /insufficient funds|0x1/);
await spl.freezeAccount(connection, payer, to.address, mint, payer);
await refused('frozen account', () => spl.transferChecked(connection, payer, from.address, mint, to.address, alice, 1n, 6), /0x11|frozen/);
await spl.thawAccount(connection, payer, to.address, mint, payer);

const multisig = await spl.createMultisig(connection, payer, [alice.publicKey, bob.publicKey, payer.publicKey], 2);
const shared = await spl.getOrCreateAssociatedTokenAccount(connection, payer, mint, multisig, true);
await spl.transferChecked(connection, payer, from.address, mint, shared.address, alice, 1_000n, 6);
await refused('one of two signers', () => spl.transferChecked(connection, payer, shared.address, mint, to.address, multisig, 10n, 6, [alice]), /missing required signature/i);
await spl.transferChecked(connection, payer, shared.address, mint, to.address, multisig, 10n, 6, [alice, bob]);
check('two of two signers', (await spl.getAccount(connection, shared.address)).amount === 990n);

// A durable nonce.
const nonce = web3.Keypair.generate();
const space = await connection.getMinimumBalanceForRentExemption(web3.NONCE_ACCOUNT_LENGTH);
await web3.sendAndConfirmTransaction(connection, new web3.Transaction().add(web3.SystemProgram.createNonceAccount({
  fromPubkey: payer.publicKey, noncePubkey: nonce.publicKey, authorizedPubkey: payer.publicKey, lamports: space,
})), [payer, nonce]);
const value = await connection.getNonce(nonce.publicKey);
const durable = new web3.Transaction({
  feePayer: payer.publicKey, minContextSlot: 1,
  nonceInfo: { nonce: value.nonce, nonceInstruction: web3.SystemProgram.nonceAdvance({ noncePubkey: nonce.publicKey, authorizedPubkey: payer.publicKey }) },
}).add(web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: bob.publicKey, lamports: SOL }));
await web3.sendAndConfirmTransaction(connection, durable, [payer]);
check('durable nonce', (await connection.getBalance(bob.publicKey)) === SOL);
check('nonce is used up', (await connection.getNonce(nonce.publicKey)).nonce !== value.nonce);

// A transaction of version 0 whose accounts come from a lookup table.
const recentSlot = await connection.getSlot('finalized'); // the slot of the preflight's own block is not a recent one yet
const [create, tableKey] = web3.AddressLookupTableProgram.createLookupTable({ authority: payer.publicKey, payer: payer.publicKey, recentSlot });
await web3.sendAndConfirmTransaction(connection, new web3.Transaction().add(create, web3.AddressLookupTableProgram.extendLookupTable({
  payer: payer.publicKey, authority: payer.publicKey, lookupTable: tableKey, addresses: [mint, from.address, to.address, bob.publicKey],
})), [payer]);
const { value: table } = await connection.getAddressLookupTable(tableKey);
check('lookup table', table.isActive() && table.state.addresses.length === 4 && table.state.authority.equals(payer.publicKey));
for (const started = await connection.getSlot(); (await connection.getSlot()) <= started;) await new Promise((r) => setTimeout(r, 50));
const life = await connection.getLatestBlockhash();
const small = new web3.TransactionMessage({
  payerKey: payer.publicKey, recentBlockhash: life.blockhash,
  instructions: [
    spl.createTransferCheckedInstruction(from.address, mint, to.address, alice.publicKey, 9n, 6),
    web3.SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: bob.publicKey, lamports: 5 }),
  ],
}).compileToV0Message([table]);
check('loaded accounts are not in the message', small.staticAccountKeys.length === 4 && small.addressTableLookups.length === 1);
const loading = new web3.VersionedTransaction(small);
loading.sign([payer, alice]);
const simulated = await connection.simulateTransaction(loading);
check('simulation with loaded accounts', simulated.value.err === null, JSON.stringify(simulated.value));
const sent = await connection.sendTransaction(loading);
await connection.confirmTransaction({ signature: sent, ...life });
const seen = await connection.getTransaction(sent, options);
const keys = seen.transaction.message.getAccountKeys({ accountKeysFromLookups: seen.meta.loadedAddresses });
check('keys of a transaction with a lookup table', keys.length === 8 && keys.get(7).equals(mint) && seen.version === 0);
const credited = seen.meta.postTokenBalances.find((b) => keys.get(b.accountIndex).equals(to.address));
check('balances go by all keys', credited?.owner === bob.publicKey.toBase58() && credited.uiTokenAmount.amount === '250019', JSON.stringify(seen.meta.postTokenBalances));
const seenParsed = await connection.getParsedTransaction(sent, options);
check('parsed keys name their source', seenParsed.transaction.message.accountKeys.filter((k) => k.source === 'lookupTable').length === 4);
await web3.sendAndConfirmTransaction(connection, new web3.Transaction().add(web3.AddressLookupTableProgram.deactivateLookupTable({
  lookupTable: tableKey, authority: payer.publicKey })), [payer]);
check('deactivated table', !(await connection.getAddressLookupTable(tableKey)).value.isActive());

// A subscription to a program, as wallets follow token accounts.
let follow;
const followed = new Promise((resolve) => {
  follow = connection.onProgramAccountChange(spl.TOKEN_PROGRAM_ID, (change) => resolve(change), {
    commitment: 'confirmed', filters: [{ dataSize: 165 }, { memcmp: { offset: 32, bytes: bob.publicKey.toBase58() } }],
  });
});
await spl.transferChecked(connection, payer, from.address, mint, to.address, alice, 5n, 6);
const followedChange = await followed;
check('program subscription', followedChange.accountId.equals(to.address) && followedChange.accountInfo.data.length === 165);
await connection.removeProgramAccountChangeListener(follow);

// The newer client, which knows every shape by its types.
const rpc = kit.createSolanaRpc(url);
const again = await rpc.getTransaction(paid, { ...options, encoding: 'json' }).send();
check('kit: transaction', again.meta.fee === 10_000n && again.slot === BigInt(shown.slot));
const balance = await rpc.getTokenAccountBalance(to.address.toBase58(), { commitment: 'confirmed' }).send();
check('kit: token balance', balance.value.amount === '250024', balance.value.amount);
const statuses = await rpc.getSignatureStatuses([paid], { searchTransactionHistory: true }).send();
check('kit: status', statuses.value[0].err === null);
const abort = new AbortController();
const subscriptions = kit.createSolanaRpcSubscriptions(ws);
const changes = await subscriptions.accountNotifications(to.address.toBase58(), { commitment: 'confirmed', encoding: 'base64' })
  .subscribe({ abortSignal: abort.signal });
const last = spl.transferChecked(connection, payer, from.address, mint, to.address, alice, 1n, 6);
for await (const change of changes) {
  check('kit: account notification', Buffer.from(change.value.data[0], 'base64').readBigUInt64LE(64) === 250_025n);
  break;
}
await last;
abort.abort();
console.log(failures ? `${failures} FAILED` : 'all passed');
process.exit(failures ? 1 : 0);
