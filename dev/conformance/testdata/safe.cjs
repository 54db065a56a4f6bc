// What owners do with the tools of others: Safe's own library and ethers.
// Arguments: a directory of node_modules, and a request in JSON. The answer is a line of JSON.
const { join } = require('node:path')
const [modules, text] = process.argv.slice(2)
const { default: Safe, EthSafeSignature } = require(join(modules, '@safe-global/protocol-kit'))
const { Contract, JsonRpcProvider, Wallet } = require(join(modules, 'ethers'))
const request = JSON.parse(text)

const kit = (signer) =>
  Safe.init({
    provider: request.rpc, signer, safeAddress: request.safe, predictedSafe: request.predicted,
    contractNetworks: { [request.chain]: request.contracts },
  })

const transaction = (safe) =>
  safe.createTransaction({ transactions: [request.transaction], options: { nonce: request.nonce } })

const commands = {
  async read() {
    const safe = await kit()
    return {
      owners: await safe.getOwners(), threshold: await safe.getThreshold(), nonce: await safe.getNonce(),
      version: safe.getContractVersion(), modules: await safe.getModules(),
    }
  },
  // One owner signs in every way that there is.
  async sign() {
    const safe = await kit(request.key)
    const tx = await transaction(safe)
    const signatures = {}
    for (const method of ['eth_signTypedData_v4', 'eth_sign']) {
      const signed = await safe.signTransaction(tx, method)
      signatures[method] = [...signed.signatures.values()].pop().data
    }
    const { EIP712Domain, ...types } = request.typed.types
    signatures.ethers = await new Wallet(request.key).signTypedData(request.typed.domain, types, request.typed.message)
    return { hash: await safe.getTransactionHash(tx), signatures }
  },
  // The library's own changes of the owners, or its rejection of what has a number. Several steps are one batch. One owner signs it.
  async prepare() {
    const safe = await kit(request.key)
    const made = []
    for (const [method, ...given] of request.steps) made.push(await safe[method](...given))
    const calls = made.map(({ data: { to, value, data } }) => ({ to, value, data }))
    const tx = calls.length > 1 ? await safe.createTransaction({ transactions: calls }) : made[0]
    const signed = await safe.signTransaction(tx, 'eth_signTypedData_v4')
    const { to, value, data, operation, nonce } = tx.data
    return {
      hash: await safe.getTransactionHash(tx), call: { to, value, data, operation }, nonce,
      signature: [...signed.signatures.values()].pop().data,
    }
  },
  // A stranger carries out what the owners signed, with the library or with ethers.
  async execute() {
    const safe = await kit(request.key)
    const tx = await transaction(safe)
    for (const [owner, signature] of Object.entries(request.signatures)) {
      tx.addSignature(new EthSafeSignature(owner, signature))
    }
    if (request.by !== 'ethers') return { hash: (await safe.executeTransaction(tx)).hash }
    const sender = new Wallet(request.key, new JsonRpcProvider(request.rpc))
    const contract = new Contract(request.safe, [
      'function execTransaction(address, uint256, bytes, uint8, uint256, uint256, uint256, address, address, bytes) payable returns (bool)',
    ], sender)
    const { to, value, data, operation, safeTxGas, baseGas, gasPrice, gasToken, refundReceiver } = tx.data
    const sent = await contract.execTransaction(
      to, value, data, operation, safeTxGas, baseGas, gasPrice, gasToken, refundReceiver, tx.encodedSignatures(),
    )
    return { hash: sent.hash }
  },
  async deploy() {
    const safe = await kit(request.key)
    const tx = await safe.createSafeDeploymentTransaction()
    return { address: await safe.getAddress(), to: tx.to, data: tx.data }
  },
}

commands[request.command]().then(
  (answer) => console.log(JSON.stringify(answer)),
  (error) => {
    console.error(error)
    process.exitCode = 1
  },
)
