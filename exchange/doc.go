// Package exchange is the domain of Kivuko: what the business is, without any technology.
//
// It does no input or output and reads no clock. Everything else imports it; of ours it imports money alone.
//
// The glossary:
//
//   - Offer: a vendor's standing promise to sell or buy a stablecoin at a rate; what it promises is held while it is published.
//   - Order: a customer's purchase (on-ramp) or sale (off-ramp) of crypto, at a price fixed when it is opened.
//   - Quote: a price that is promised for a short time; Rate: what a unit of one asset costs in another, with its time.
//   - Prompt: the operator's question on a payer's phone whether to pay.
//   - Attempt: one try to move mobile money, with a row that is written before the operator is called.
//   - Collection: mobile money that a customer owes and pays to us; Payout: what we owe and pay out.
//   - Evidence: what one source (callback, status query, statement) says of an attempt; two sources that agree prove a payment.
//   - Attestation: what an officer declares about a payout, with a receipt or a second officer.
//   - Unknown outcome: a state of an attempt that may have moved money; only evidence ends it, never a timer.
//   - Receipt: the operator's own id of a payment that was made.
//   - Float: the shillings at the operator from which payouts are paid.
//   - Breaker: the switch that stops all payouts when the operator refuses our credentials.
//   - Account: a place of the ledger; Entry: amounts moved between accounts, whose sum is zero for each asset.
//   - Hold: a part of an account's balance that is reserved; Suspense: the account of money that has no owner yet.
//   - Wallet: an address on a network and who owns it; Signer: the process that alone opens its key.
//   - Cold wallet: a wallet whose key is opened only on a machine without a network.
//   - Counterpart wallet: the account of the same key on another network, where an address has another spelling.
//   - Chain payment: one approved payment on a network; Chain attempt: one signed transaction that is to carry it out.
//   - Nonce sequence: the numbers of a wallet's transactions on a network that numbers them.
//   - Fee bump: a transaction that replaces one with the same number by a higher fee; both stay watched.
//   - Top-up: native coin that the gas wallet of a network gives a sender for the fee.
//   - Deposit: crypto that arrived at one of our addresses; it counts when its block is final.
//   - Escrow: an address that one sale borrows and that rests afterwards; Replenish: to make more of them.
//   - Sweep: the transfer of a sale's crypto from its escrow address to the vendor.
//   - Refund: money given back to who paid it; Payment exception: money that fits nothing, until an officer or a rule decides.
//   - Transfer: a customer's own payment of crypto to an address or another customer.
//   - Screening: the question whether somebody outside of our custody may be paid, or paid from.
//   - Park: a flow stops and waits; Park reason: why, and the heading of its runbook.
//   - Operator command: what an officer sends to a parked flow: retry, refund or resolve. "The operator" is the mobile money company.
//   - Principal: who asks; the policy says what each role may do, and to whose objects.
//   - Event: a change that customers may be told by webhook; Audit row: who changed what, in a chain of hashes.
package exchange
