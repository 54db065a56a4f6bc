// Package exchange is the domain of Kivuko: the rules of the business, without any technology.
//
// It does no input or output and reads no clock. The other packages import it; of ours, it imports only money.
//
// The glossary:
//
//   - Offer: a vendor's standing offer to sell or buy a stablecoin at a rate; its funds are held while it is published.
//   - Order: a customer's purchase (on-ramp) or sale (off-ramp) of crypto, at a price fixed when it is opened.
//   - Quote: a price that is promised for a short time; Rate: the price of a unit of one asset in another, from a time on.
//   - Provider: the mobile money operator, the company whose API moves shillings. Sentences about its protocol call it the
//     operator; in sentences about parked flows an operator is the officer who commands them.
//   - Prompt: the operator's request on a payer's phone to confirm a payment.
//   - Attempt: one try to move mobile money, with a row that is written before the operator is called.
//   - Collection: mobile money that a customer pays to us; Payout: mobile money that we pay.
//   - Evidence: what one source (callback, query, statement) reports about an attempt; two sources that agree prove a payment.
//   - Attestation: an officer's declaration about a payout, with a receipt or a second officer.
//   - Unknown outcome: a state of an attempt that may have moved money; only evidence ends it, never a timer.
//   - Receipt: the operator's own id of a payment that was made.
//   - Float: the shillings at the operator that payouts are paid from.
//   - Breaker: the switch that stops all payouts when the operator refuses our credentials.
//   - Account: a balance in the ledger; Entry: amounts that move between accounts, whose sum is zero for each asset.
//   - Hold: a part of an account's balance that is reserved; Suspense: the account for money without a known owner.
//   - Wallet: an address on a network and who owns it; Signer: the only process that opens its key.
//   - Cold wallet: a wallet whose key is opened only on a machine without a network.
//   - Counterpart wallet: the account of the same key on another network, where the address is written differently.
//   - Chain payment: one approved payment on a network; Chain attempt: one signed transaction that carries it out.
//   - Nonce sequence: the numbers of a wallet's transactions on a network that numbers them.
//   - Fee bump: a transaction with the same number and a higher fee; both stay watched.
//   - Top-up: native coin that the gas wallet of a network gives a sender for the fee.
//   - Deposit: crypto that arrived at one of our addresses; it counts when its block is final.
//   - Escrow: an address that is leased to one sale and then rests; Replenish: to make more of them.
//   - Sweep: the transfer of a sale's crypto from its escrow address to the vendor.
//   - Refund: money returned to its payer; Payment exception: money that does not fit, until an officer or a rule decides.
//   - Transfer: a customer's own payment of crypto to an address or another customer.
//   - Screening: the check whether an outside address may be paid, or may pay us.
//   - Park: a flow stops and waits; Park reason: the reason's code, and the heading of its runbook.
//   - Operator command: what an officer sends to a parked flow (retry, refund, resolve).
//   - Principal: the caller; the policy lists what each role may do, and on whose objects.
//   - Event: a change that webhooks may report; Audit row: who changed what, in a chain of hashes.
package exchange
