// Package exchange is the domain of Kivuko: the rules of the business, without any technology.
//
// It does no input or output and reads no clock. The other packages import it; of ours, it imports only money.
//
// The glossary:
//
//   - House: Kivuko itself, as the owner of accounts, wallets and float; its fees and capital are not owed to anybody.
//   - Staff: the accounts of the house (roles admin, treasury, otc_officer); Officer: an admin or a treasury officer, who may
//     approve and confirm what others propose.
//   - Merchant, also master vendor: a business that trades here, with the role vendor; Subvendor: a user who acts for it.
//     Vendor in names of fields and rows is the merchant of an order or an offer.
//   - Customer: a verified person who buys, sells and sends.
//   - Treasury: the house's own shillings and coins for trading, and its wallets.
//   - Offer: a merchant's standing offer to sell or buy a stablecoin at a rate; its funds are held while it is published.
//   - Inventory: crypto of the treasury that two officers set aside; the house sells it at quotes, without an offer.
//   - Order: a purchase (on-ramp) or sale (off-ramp) of crypto by a customer or a merchant, at a price fixed when it is opened.
//   - Quote: a price that is promised for a short time; Rate: the price of a unit of one asset in another, from a time on.
//   - Fee profile: the versions of a fee for a purpose and an asset; an object keeps the version that it was opened with.
//   - Flow: a Temporal workflow; Momo in names: mobile money; Rail: the way that money takes (momo, bank, chain).
//   - Provider: the mobile money operator, the company whose API moves shillings. Sentences about its protocol call it the
//     operator; in sentences about parked flows an operator is the officer who commands them.
//   - Prompt: the operator's request on a payer's phone to confirm a payment.
//   - Attempt: one try to move mobile money, with a row that is written before the operator is called.
//   - Collection: mobile money that is paid to us, by a prompt or by the payer's own payment to our number (C2B).
//   - Payout: shillings that we pay, by mobile money or by bank.
//   - Evidence: what one source (callback, query, statement) reports about an attempt; two sources that agree prove a payment.
//   - Attestation: an officer's declaration about a payout, with a receipt or a second officer.
//   - Unknown outcome: a state of an attempt that may have moved money; only evidence ends it, never a timer.
//   - Receipt: the operator's own id of a payment that was made.
//   - Float: the shillings at the operator that payouts are paid from.
//   - Breaker: the switch that stops all payouts when the operator refuses our credentials.
//   - Account: a balance in the ledger; Entry: amounts that move between accounts, whose sum is zero for each asset.
//   - Hold: a part of an account's balance that is reserved; Suspense: the account for money without a known owner.
//   - Journal entry: what happened to the house's money outside of Kivuko, booked by two treasury officers.
//   - Statement: a bank's list of the movements of an account of the house; Line: one of them; Match: what explains it.
//   - Wallet: an address on a network and who owns it; Signer: the only process that opens its key.
//   - Cold wallet: a wallet whose key is opened only on a machine without a network.
//   - Counterpart wallet: the account of the same key on another network, where the address is written differently.
//   - Chain payment: one approved payment on a network; Chain attempt: one signed transaction that carries it out.
//   - Draft: an unsigned transaction of a cold wallet that was handed out to be signed.
//   - Nonce sequence: the numbers of a wallet's transactions on a network that numbers them.
//   - Fee bump: a transaction with the same number and a higher fee; both stay watched.
//   - Top-up: native coin that the gas wallet of a network gives a sender for the fee.
//   - Movement: a transfer on a chain into or out of one of our addresses; Deposit: one that came in. Only final ones count.
//   - Quarantine: movements that can't be read or booked, or that left a wallet without a payment of ours; an officer settles them.
//   - Escrow: an address that is leased to one sale and then rests; Replenish: to make more of them.
//   - Sweep: the transfer of a sale's crypto from its escrow address to the buyer's wallet.
//   - Refund: money returned to its payer; Payment exception: money that does not fit, until an officer or a rule decides.
//   - Transfer: a payment of crypto from a wallet in our custody, as its owner asked, to an address or another user.
//   - Screening: the check whether an outside address may be paid, or may pay us.
//   - Control change: a change or decision of one officer that takes effect when a second one confirms it.
//   - Park: a flow stops and waits; Park reason: the reason's code, and the heading of its runbook.
//   - Operator command: what an officer sends to a parked flow (retry, refund, resolve).
//   - Principal: the caller; the policy lists what each role may do, and on whose objects.
//   - Event: a change that webhooks may report; Audit row: who changed what, in a chain of hashes.
package exchange
