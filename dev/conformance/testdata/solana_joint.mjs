// SPDX-License-Identifier: Apache-2.0
// Signs, completes and makes transactions of accounts of several owners with @solana/web3.js and @solana/spl-token, which are
// not ours. One request on the standard input, one response on the standard output; bytes are in base64.
//   node solana_joint.mjs DIR
// DIR is where npm put the packages.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const require = createRequire(path.join(path.resolve(process.argv[2]), 'node_modules', 'x.js'));
const web3 = require('@solana/web3.js');
const spl = require('@solana/spl-token');

const request = JSON.parse(readFileSync(0, 'utf8'));
const bytes = (text) => Buffer.from(text, 'base64');
const keys = (request.keys ?? []).map((k) => web3.Keypair.fromSecretKey(bytes(k)));
const key = (text) => new web3.PublicKey(text);

// unsigned is our message as the transaction that a wallet gets.
const unsigned = () => {
  const message = bytes(request.message);
  const signers = message[0];
  return web3.Transaction.from(Buffer.concat([Buffer.from([signers]), Buffer.alloc(64 * signers), message]));
};

// whole is a transaction's bytes, which web3.js gives only if every signature is there and verifies.
const whole = (tx) => tx.serialize({ requireAllSignatures: true, verifySignatures: true }).toString('base64');

// advanceOf is the instruction that uses a nonce.
const advanceOf = (nonce, authority) => web3.SystemProgram.nonceAdvance({ noncePubkey: nonce, authorizedPubkey: authority });

const operations = {
  // sign is what an owner's wallet does with our message: it reads it, and signs.
  sign() {
    const tx = unsigned();
    tx.partialSign(...keys);
    const advanced = web3.SystemInstruction.decodeNonceAdvance(tx.instructions[0]);
    const paid = spl.decodeTransferCheckedInstruction(tx.instructions.at(-1));
    const signatures = {};
    for (const k of keys) {
      signatures[k.publicKey.toBase58()] = tx.signatures.find((s) => s.publicKey.equals(k.publicKey)).signature.toString('base64');
    }
    return {
      signatures, owner: paid.keys.owner.pubkey.toBase58(), destination: paid.keys.destination.pubkey.toBase58(), amount: String(paid.data.amount),
      signers: paid.keys.multiSigners.map((s) => s.pubkey.toBase58()),
      nonce: advanced.noncePubkey.toBase58(), authority: advanced.authorizedPubkey.toBase58(),
    };
  },
  // complete puts the owners' signatures and the fee payer's into a transaction.
  complete() {
    const tx = unsigned();
    for (const [owner, signature] of Object.entries(request.signatures)) tx.addSignature(key(owner), bytes(signature));
    tx.partialSign(...keys);
    return { transaction: whole(tx) };
  },
  // open makes an account of several owners with a key of its own, as spl-token does.
  open() {
    const account = web3.Keypair.generate();
    const tx = new web3.Transaction({ feePayer: keys[0].publicKey, recentBlockhash: request.blockhash }).add(
      web3.SystemProgram.createAccount({
        fromPubkey: keys[0].publicKey, newAccountPubkey: account.publicKey, space: spl.MULTISIG_SIZE, lamports: 3_361_680, programId: spl.TOKEN_PROGRAM_ID,
      }),
      spl.createInitializeMultisigInstruction(account.publicKey, request.owners.map(key), request.threshold),
    );
    tx.sign(keys[0], account);
    return { address: account.publicKey.toBase58(), transaction: whole(tx) };
  },
  // pay is a payment that the first key pays for and the others sign as owners, valid by a nonce.
  pay() {
    const [payer, ...owners] = keys;
    const tx = new web3.Transaction({
      feePayer: payer.publicKey, nonceInfo: { nonce: request.value, nonceInstruction: advanceOf(key(request.nonce), payer.publicKey) }, minContextSlot: 0,
    }).add(spl.createTransferCheckedInstruction(key(request.source), key(request.mint), key(request.destination), key(request.multisig), request.amount, 6, owners));
    tx.sign(payer, ...owners);
    return { transaction: whole(tx) };
  },
};
process.stdout.write(JSON.stringify(operations[request.op]()));
