package exchange

// OrderField is a field of orders: the column that stores it, and its name in events. The store makes its statements from
// the list of fields, and events their payloads.
type OrderField struct {
	Column string             // of the table of orders, or what the store reads in its place; empty when it follows from others
	Value  func(o *Order) any // what is stored
	Write  OrderWrite
	Event  EventField // without a name, events don't have it
}

// OrderWrite is when the service writes a field.
type OrderWrite int

// When a field is written. OrderDerived is written by the database alone.
const (
	OrderOpened  OrderWrite = iota // when the order is opened
	OrderChanges                   // also afterwards
	OrderDerived
)

// optional is a field of payloads that may be null.
func optional(name string) EventField {
	f := known(name)
	f.Nullable = true
	return f
}

// OrderFields lists the fields of orders.
func OrderFields() []OrderField { return orderFields }

// orderPayload are the fields of orders that events have.
func orderPayload() []EventField {
	var out []EventField
	for _, f := range orderFields {
		if f.Event.Name != "" {
			out = append(out, f.Event)
		}
	}
	return out
}

var orderFields = []OrderField{
	{Column: "id", Value: func(o *Order) any { return o.ID }, Event: known("id")},
	{Column: "customer_id", Value: func(o *Order) any { return o.CustomerID }, Event: known("customer_id")},
	{Column: "vendor_id", Value: func(o *Order) any { return o.VendorID }, Event: known("vendor_id")},
	{Column: "offer_id", Value: func(o *Order) any { return o.OfferID }, Event: optional("offer_id")},
	{Column: "order_type", Value: func(o *Order) any { return o.Type }, Event: known("order_type")},
	{Column: "order_subtype", Value: func(o *Order) any { return o.Subtype }, Event: known("order_subtype")},
	{Column: "network", Value: func(o *Order) any { return o.Network }, Event: known("network")},
	{Column: "asset", Value: func(o *Order) any { return o.Asset }, Event: known("asset")},
	{Column: "rate", Value: func(o *Order) any { return o.Rate }, Event: known("rate")},
	{Column: "crypto_amount", Value: func(o *Order) any { return o.Price.Crypto }, Write: OrderChanges, Event: known("crypto_amount")},
	{Column: "fiat_amount", Value: func(o *Order) any { return o.Price.Fiat }, Write: OrderChanges, Event: known("fiat_amount")},
	{Value: func(o *Order) any { return o.Price.Fiat.Asset() }, Event: known("fiat_currency")},
	{Column: "vendor_amount", Value: func(o *Order) any { return o.Price.Vendor }, Write: OrderChanges},
	{Column: "rounding_amount", Value: func(o *Order) any { return o.Price.Rounding }, Write: OrderChanges},
	{Column: "fee_amount", Value: func(o *Order) any { return o.Price.Fee }, Write: OrderChanges, Event: known("fee_amount")},
	{Column: "pricing_profile_id", Value: func(o *Order) any { return o.ProfileID }, Event: optional("pricing_profile_id")},
	{Column: "network_fee", Value: func(o *Order) any { return o.NetworkFee }, Write: OrderDerived},
	{Column: "asked_amount", Value: func(o *Order) any { return o.AskedAmount }, Write: OrderDerived},
	{Column: "wallet_id", Value: func(o *Order) any { return o.WalletID }},
	{Column: "wallet_address", Value: func(o *Order) any { return o.WalletAddress }, Write: OrderChanges, Event: known("wallet_address")},
	{Column: "refund_address", Value: func(o *Order) any { return o.RefundAddress }, Write: OrderChanges},
	{Column: "opened_by", Value: func(o *Order) any { return o.OpenedBy }},
	{Column: "quote_id", Value: func(o *Order) any { return o.QuoteID }},
	{Column: "fund_wallet_id", Value: func(o *Order) any { return o.FundWalletID }},
	{Column: "status", Value: func(o *Order) any { return o.Status }, Write: OrderChanges, Event: known("status")},
	{Column: "status_detail", Value: func(o *Order) any { return o.StatusDetail }, Write: OrderChanges, Event: known("status_detail")},
	{Column: "payment_method", Value: func(o *Order) any { return o.PaymentMethod }, Event: known("payment_method")},
	{Column: "payment_phone", Value: func(o *Order) any { return o.PaymentPhone }, Event: known("payment_phone_number")},
	{Column: "hold_id", Value: func(o *Order) any { return o.HoldID }, Write: OrderChanges},
	{Column: "payment_reference", Value: func(o *Order) any { return o.PaymentReference }},
	{Column: "payment_txn_id", Value: func(o *Order) any { return o.PaymentTxnID }, Write: OrderChanges},
	{Column: "tx_hash", Value: func(o *Order) any { return o.TxHash }, Write: OrderChanges, Event: known("blockchain_txn_hash")},
	{Column: "merchant_request", Value: func(o *Order) any { return o.MerchantRequest }, Write: OrderChanges},
	{Column: "checkout_request", Value: func(o *Order) any { return o.CheckoutRequest }, Write: OrderChanges},
	{Column: "momo_receipt", Value: func(o *Order) any { return o.MomoReceipt }, Write: OrderChanges, Event: known("momo_receipt_number")},
	{Column: "sender_name", Value: func(o *Order) any { return o.SenderName }},
	{Column: "sender_country", Value: func(o *Order) any { return o.SenderCountry }},
	{Column: "sender_phone", Value: func(o *Order) any { return o.SenderPhone }},
	{Column: "beneficiary", Value: func(o *Order) any { return o.Beneficiary }},
	{Column: "escrow_address", Value: func(o *Order) any { return o.EscrowAddress }},
	{Column: "escrow_network", Value: func(o *Order) any { return o.EscrowNetwork }},
	{Column: "escrow_reference", Value: func(o *Order) any { return o.EscrowReference }},
	{Column: "other_deposit_id", Value: func(o *Order) any { return o.Other.ID }, Write: OrderChanges},
	{Column: "other_tx", Value: func(o *Order) any { return o.Other.TxID }, Write: OrderDerived},
	{Column: "other_amount", Value: func(o *Order) any { return o.Other.Amount }, Write: OrderDerived},
	{Column: "other_fee", Value: func(o *Order) any { return o.Other.Fee }, Write: OrderDerived},
	{Column: "deposit_tx_hash", Value: func(o *Order) any { return o.DepositTxHash }, Write: OrderChanges},
	{Column: "deposit_confirms", Value: func(o *Order) any { return o.DepositConfirms }, Write: OrderChanges},
	{Column: "deposit_at", Value: func(o *Order) any { return o.DepositAt }, Write: OrderChanges},
	{Column: "expires_at", Value: func(o *Order) any { return o.ExpiresAt }, Event: known("expires_at")},
	{Column: "waits_until", Value: func(o *Order) any { return o.WaitsUntil }, Write: OrderDerived},
	{Column: "completed_at", Value: func(o *Order) any { return o.CompletedAt }, Write: OrderChanges},
	{Column: "created_at", Value: func(o *Order) any { return o.CreatedAt }},
	{Column: "updated_at", Value: func(o *Order) any { return o.UpdatedAt }, Write: OrderChanges},
	{Column: "deleted_at", Value: func(o *Order) any { return o.DeletedAt }},
	{Column: "version", Value: func(o *Order) any { return o.Version }, Write: OrderChanges, Event: known("version")},
}
