// What owners do with the tools of others: Safe's own library and ethers.
// Arguments: a directory of node_modules, and a request in JSON. The answer is a line of JSON.
const { join } = require('node:path')
const [modules, text] = process.argv.slice(2)
const { default: Safe, EthSafeSignature } = require(join(modules, '@safe-global/protocol-kit'))
const { Wallet } = require(join(modules, 'ethers'))
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
  // A stranger carries out what the owners signed.
  async execute() {
    const safe = await kit(request.key)
    const tx = await transaction(safe)
    for (const [owner, signature] of Object.entries(request.signatures)) {
      tx.addSignature(new EthSafeSignature(owner, signature))
    }
    return { hash: (await safe.executeTransaction(tx)).hash }
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
