// Package exchange is the domain of Kivuko: what the business is, without any technology.
//
// It does no input or output and reads no clock. Everything else imports it; it imports nothing of
// ours but money.
//
// The language:
//
//   - An Offer is a vendor's standing promise to sell (SELL) or buy (BUY) a stablecoin at a rate. A
//     published offer is funded: what it promises is held in the vendor's accounts.
//   - An Order is a customer's purchase or sale against an offer, at a price fixed when it is opened.
//   - A PaymentAttempt is one try to move mobile money. An Observation is what a witness says of it.
//   - A ChainPayment is one approved payment on a blockchain; each signed transaction that tries to
//     carry it out is a ChainAttempt.
//   - An Account belongs to the ledger. An Entry moves amounts between accounts and sums to zero per
//     asset. A Hold reserves part of an account's balance.
//   - A Wallet is an address on a network and who owns it. A Signer holds its key; nobody else does.
//   - A PaymentException is money that arrived and does not fit: too little, too much, too late,
//     twice, or for nothing. A Refund gives it back.
//   - A Principal is who asks. The policy says what each role may do, and to whose objects.
package exchange
