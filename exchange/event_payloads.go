package exchange

import (
	"slices"
	"strings"

	"kivuko/exchange/money"
)

// EventValue is the kind of value that a field of an event's payload has.
type EventValue string

// Kinds of values.
const (
	EventID     EventValue = "id"     // a UUID
	EventText   EventValue = "text"   // any text, which may be empty
	EventAmount EventValue = "amount" // a decimal number in a text
	EventNumber EventValue = "number" // an integer
	EventFlag   EventValue = "flag"
	EventTime   EventValue = "time"  // RFC 3339 in UTC
	EventTexts  EventValue = "texts" // a list of texts
	EventTerms  EventValue = "terms" // an object that depends on the kind of the change
)

// EventField is a field of the payload of an event.
type EventField struct {
	Name     string
	Value    EventValue
	Means    string   // a sentence
	Words    []string // the only values of a text, if there are such
	Nullable bool     // null where there is none
	Optional bool     // absent where there is none
}

// EventPayload lists the fields of the payload of a type of event, by name. Tests hold every event that they cause to it.
func EventPayload(kind EventType) []EventField {
	out := orderPayload()
	if kind.Object != "order" {
		out = listedPayload(kind)
	}
	for i, f := range out {
		if words := eventWords(kind.Object, f.Name); words != nil {
			out[i].Words = words
		}
		if means := eventMeans[kind.Object+" "+f.Name]; means != "" {
			out[i].Means = means
		}
	}
	slices.SortFunc(out, func(a, b EventField) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// listedPayload are the fields of payloads that payloadOf lists.
func listedPayload(kind EventType) []EventField {
	list, special := payloadOf[kind.Type]
	if !special {
		list = payloadOf[kind.Object]
	}
	var out []EventField
	for entry := range strings.FieldsSeq(list) {
		f := known(strings.TrimRight(entry, "?~"))
		f.Nullable, f.Optional = strings.Contains(entry, "?"), strings.Contains(entry, "~")
		if kind.Object == "deposit_quarantine" && f.Name == "asset" {
			f.Words = nil // what was refused may be anything, or nothing
		}
		out = append(out, f)
	}
	return out
}

// known is a field of payloads by its name.
func known(name string) EventField {
	f := eventFields[name]
	f.Name = name
	return f
}

// eventWords are the only values of a field whose words depend on the object; nil for other fields.
func eventWords(object, field string) []string {
	if words := wordsOf[object+" "+field]; words != nil {
		return words
	}
	for _, m := range machineEvents {
		if m.object == object && field == "status" {
			return m.states
		}
	}
	return nil
}

var wordsOf = map[string][]string{
	"offer status":                    texts(OfferMachine.States()),
	"webhook_endpoint status":         texts(WebhookMachine.States()),
	"order status_detail":             OrderDetails(),
	"fee_sweep status_detail":         FeeSweepDetails(),
	"transfer status_detail":          TransferDetails(),
	"transfer kind":                   texts([]TransferKind{InternalTransfer, ExternalTransfer}),
	"payment_exception kind":          texts(ExceptionKinds()),
	"chain_deposit kind":              texts(DepositKinds()),
	"bank_statement status":           texts(StatementMachine.States()),
	"bank_line status":                texts(LineMachine.States()),
	"bank_line object_type":           LineObjects(),
	"journal_entry kind":              texts(JournalKinds()),
	"otc_deposit status_detail":       OTCDetails(),
	"otc_deposit method":              append([]string{""}, texts(OTCMethods())...),
	"otc_deposit requested_asset":     {"", string(money.KES), string(money.USDT), string(money.USDC)},
	"otc_deposit flag":                texts(OTCFlags()),
	"otc_withdrawal status_detail":    WithdrawalDetails(),
	"otc_withdrawal payout_method":    texts(WithdrawalMethods()),
	"otc_destination kind":            texts(DestinationKinds()),
	"swap status_detail":              SwapDetails(),
	"multisig_account kind":           texts(MultisigKinds()),
	"multisig_proposal kind":          texts(ProposalKinds()),
	"multisig_proposal ending":        append([]string{""}, texts(proposalEnds())...),
	"multisig_proposal status_detail": ProposalDetails(),
	"multisig_account custody":        texts(MultisigCustodies()),
	"control_change kind":             texts(ControlKinds()),
	"chain_payment purpose":           texts(ChainPurposes()),
	"fx_quote purpose":                texts(QuotePurposes()),
	"fx_quote amount_side":            texts([]AmountSide{AmountCrypto, AmountFiat}),
	"fx_quote method":                 {FeeByMomo, FeeByBank, FeeByC2B, FeeByChain},
	"fee_profile scope":               texts(FeeScopes()),
	"fee_profile method":              {FeeByMomo, FeeByBank, FeeByC2B, FeeByChain},
	"order payment_method":            {PaymentMethodMomo, PaymentMethodBank},
	"wallet owner_type":               texts([]OwnerType{OwnerCustomer, OwnerTreasury, OwnerMerchant, OwnerSubMerchant}),
	"wallet type":                     texts([]WalletType{Hot, Cold}),
	"wallet custody":                  texts([]Custody{Custodial, Multisig}),
	"order_payout rail":               texts([]PayoutRail{PayoutByMomo, PayoutByBank}),
	"payment_attempt object_type":     texts(MomoObjectTypes()),
	"refund rail":                     texts(RefundRails()),
}

// eventMeans are the meanings of fields that differ between objects.
var eventMeans = map[string]string{
	"chain_deposit kind": "What a movement on a chain is: into the wallet of a user (credit) or of the house (house), into an address that an order watches " +
		"(awaited), into an address where nothing is expected (unmatched), by a payment of the service (own), out of a wallet by a transaction that is not " +
		"the service's (outgoing), or of no amount (empty).",
	"control_change kind":              "What would change.",
	"journal_entry kind":               "What happened to the house's money.",
	"fee_sweep_rule is_active":         "Whether fees are swept by the rule.",
	"payment_exception kind":           "Why the money fits no order or payment.",
	"transfer kind":                    "Whether the recipient is in our custody.",
	"chain_payment purpose":            "What the payment is for.",
	"fx_quote purpose":                 "What the quote is for: a transfer, a purchase of crypto from the house (onramp), a sale to it (offramp), or a deposit or withdrawal at the desk.",
	"wallet purpose":                   "The purpose of a wallet of the house, empty for other wallets.",
	"deposit_quarantine reason":        "Why the movement needs an officer.",
	"escrow_address reason":            "Why the address is disabled.",
	"payment_attempt object_type":      "What the money is collected or paid out for.",
	"payment_attempt object_id":        "The object that the money is collected or paid out for.",
	"fx_quote object_type":             "The kind of object that used the quote, empty before.",
	"fx_quote object_id":               "The object that used the quote.",
	"otc_destination kind":             "How money gets there.",
	"otc_destination confirmed_by":     "The master merchant, once it confirmed it.",
	"otc_deposit method":               "How the money comes, empty in a draft that does not say.",
	"swap rate":                        "What is got for one of what is given, before the fee.",
	"swap fee":                         "The fee of the house, in what is got.",
	"multisig_account kind":            "What enforces the quorum.",
	"multisig_proposal kind":           "What the proposal does.",
	"multisig_proposal policy_version": "The version of the wallet's policy by which officers approve it.",
	"multisig_proposal merchant_id":    "The merchant with whom the wallet is shared.",
	"multisig_account custody":         "Who holds the owners' keys: themselves, or our key store.",
	"multisig_account change_id":       "The change by which two officers agreed to the account.",
	"multisig_account merchant_id":     "The merchant with whom the account is shared.",
	"multisig_account status_detail":   "Why it was refused, or how the account on the chain differs; empty otherwise.",
	"otc_deposit usdt_amount":          "The crypto that was or will be credited, in the requested asset.",
}

// payloadOf are the fields of an object's payloads, or of one type of event that has others. Those of orders are in
// OrderFields. A field with ? may be null, one with ~ may be absent.
var payloadOf = map[string]string{
	"offer": "id vendor_id offer_type network asset usdt_amount available_amount rate min_order max_order status version",
	"transfer": "id kind requested_by network asset amount from_wallet_id from_address to_wallet_id? to_address value fee fx_rate_quote_id? approvals_required " +
		"status status_detail tx_hash version",
	"fx_quote": "id purpose offer_type asset amount amount_side network~ method~ fee_currency fiat_currency fiat_amount rate fee fx_rate_id pricing_profile_id? hash status expires_at " +
		"object_type object_id? superseded_by? version",
	"fx_rate":                    "id base quote bid ask source valid_from stale_at replaces? jump_confirmed",
	"fee_profile":                "id scope merchant_id~ asset~ network~ method~ profile_version fixed basis_points minimum maximum~ spread_basis_points retired valid_from",
	"payment_attempt":            "id direction object_type object_id order_id? refund_id? provider status amount currency phone_number result_code result_class receipt moved version",
	"chain_payment":              "id purpose object_id network asset amount from_address to_address~ status detail tx_hash block fee approved_by version",
	"chain_payment.handed_out":   "id draft_id tx_hash nonce closes_at",
	"chain_payment.brought_back": "id draft_id tx_hash nonce nonce_account",
	"chain_payment.draft_lapsed": "id draft_id tx_hash nonce nonce_account",
	"chain_payment.withdrawn":    "id draft_id tx_hash nonce nonce_account",
	"order_payout":               "order_id rail amount currency phone_number status receipt refused_code version",
	"payment_exception":          "id kind status order_id? statement_line_id? otc_deposit_id? receipt amount currency version",
	"refund":                     "id rail order_id? exception_id? amount currency status detail receipt network~ address~ phone_number~ version",
	"chain_deposit":              "id network tx_hash index from_address to_address asset amount wallet_id? kind status block block_id version",
	"float_move":                 "id amount currency status asked_by code receipt settled_by? version",
	"escrow_address":             "id network status order_id? label~ reason~",
	"escrow_policy":              "network keep_free most rest_seconds idle_rest_seconds user_percent",
	"reconciliation":             "id network status detail compared deferred differences",
	"reconciliation_difference":  "id network wallet_id asset status ledger chain block exception_id? runs version",
	"control_change":             "id kind subject_id? was change proposed_by expires_at status decided_by? note",
	"bank_account":               "id bank_name bank_code branch swift_code account_name account_number currency is_active",
	"bank_day":                   "id day is_open name",
	"otc_limit":                  "id merchant_id automatic",
	"bank_statement":             "id bank_account_id file_id reference from_day to_day opening_balance closing_balance lines new_lines status ledger? difference? unexplained? version",
	"bank_line":                  "id bank_account_id statement_id reference side amount currency value_date status object_type? object_id? matched_by? version",
	"journal_entry":              "id kind bank_account_id? float_account? amount currency value_date statement_line_id? file_id? corrects? note proposed_by confirmed_by",
	"otc_destination":            "id merchant_id kind network? status created_by confirmed_by? removed_by? version",
	"otc_deposit": "id merchant_id method fiat_amount? fiat_currency status status_detail payment_reference requested_asset requested_network fx_rate_quote_id? rate fee_amount " +
		"usdt_amount? received_amount? value_date? statement_line_id? transfer_id? proof_file_id? proof_file_sha256 version",
	"otc_deposit.flagged": "id flag",
	"otc_withdrawal": "id merchant_id requested_by status status_detail payout_method source_asset source_amount source_network? payout_asset payout_amount fee_amount rate? " +
		"fx_rate_quote_id? pricing_profile_id? destination_id executed_by? transfer_id? tx_hash receipt version",
	"fee_sweep":      "id change_id scheduled requested_by? network? asset amount wallet_id? value status status_detail tx_hash version",
	"fee_sweep_rule": "id network asset threshold least is_active change_id version",
	"swap": "id requested_by owner_id? wallet_id network from_asset from_amount to_asset to_amount rate fee pricing_profile_id? quote_id status status_detail reservation_id " +
		"expires_at version",
	"swap_marks":                "id network asset low high available~ more_in~ version",
	"multisig_proposal":         "id kind merchant_id? wallet_id network asset amount destination value policy_version supersedes? signable_at~ digest status status_detail ending tx_hash expires_at version",
	"multisig_proposal.payload": "id payload_id network joint_id expires_at~",
	"multisig_proposal.void":    "id payload_id network joint_id evidence",
	"multisig_proposal.signed":  "id payload_id owner held",
	"multisig_account": "id change_id requested_by network kind custody name merchant_id? adopted address quorum control_quorum policy_version approvals status " +
		"status_detail version",
	"freeze":                     "id note pulled_by",
	"bank_confirmation":          "id order_id? withdrawal_id~? refund_id~? officer_id amount currency reference paid_on",
	"deposit_cursor":             "network block block_id",
	"deposit_quarantine.opened":  "network reason tx_hash index from to asset amount block block_id payment_id~",
	"deposit_quarantine.settled": "id note",
	"user":                       "id role is_active verified version phone_number",
	"wallet":                     "id owner_type owner_id purpose network address asset type custody is_default counterpart_of?",
	"session":                    "family_id user_id",
	"webhook_endpoint":           "id host event_types status status_detail version",
}

// eventFields are the fields of payloads by name.
var eventFields = map[string]EventField{
	"otc_deposit_id":       {Value: EventID, Means: "The OTC deposit."},
	"fee_amount":           {Value: EventAmount, Means: "The fee of the house, in shillings."},
	"flag":                 {Value: EventText, Means: "What an officer should look at."},
	"payment_reference":    {Value: EventText, Means: "What the payer writes on the payment."},
	"proof_file_id":        {Value: EventID, Means: "The file of the latest proof."},
	"proof_file_sha256":    {Value: EventText, Means: "The SHA-256 of that file in hexadecimal digits, empty without one."},
	"received_amount":      {Value: EventAmount, Means: "What came."},
	"requested_asset":      {Value: EventText, Means: "What the merchant gets, empty in a draft that does not say."},
	"requested_network":    {Value: EventText, Means: "The network of the crypto, empty for shillings."},
	"transfer_id":          {Value: EventID, Means: "The transfer of the crypto."},
	"account_name":         {Value: EventText, Means: "The name of the bank account."},
	"account_number":       {Value: EventText, Means: "The number of the bank account."},
	"address":              {Value: EventText, Means: "The address on the network."},
	"amount":               {Value: EventAmount, Means: "The amount, with all decimal places of its asset or currency."},
	"approvals_required":   {Value: EventNumber, Means: "How many officers must approve it."},
	"approved_by":          {Value: EventText, Means: "Who or what approved the payment."},
	"ask":                  {Value: EventAmount, Means: "The rate at which the house sells."},
	"asked_by":             {Value: EventID, Means: "The officer who asked for it."},
	"asset":                {Value: EventText, Means: "The asset.", Words: assetWords()},
	"available_amount":     {Value: EventAmount, Means: "What is left for orders."},
	"bank_account_id":      {Value: EventID, Means: "The account of the house at a bank."},
	"bank_code":            {Value: EventText, Means: "The bank's code in Kenya's clearing, empty for none."},
	"bank_name":            {Value: EventText, Means: "The name of the bank."},
	"base":                 {Value: EventText, Means: "The asset that is valued.", Words: assetWords()},
	"basis_points":         {Value: EventNumber, Means: "The part of the fee that grows with the amount, in hundredths of a percent."},
	"bid":                  {Value: EventAmount, Means: "The rate at which the house buys."},
	"block":                {Value: EventNumber, Means: "The number of the block, 0 before there is one."},
	"block_id":             {Value: EventText, Means: "The hash of the block."},
	"blockchain_txn_hash":  {Value: EventText, Means: "The transaction of the crypto, empty before there is one."},
	"branch":               {Value: EventText, Means: "The branch of the bank, empty for none."},
	"chain":                {Value: EventAmount, Means: "The balance on the chain."},
	"change":               {Value: EventTerms, Means: "The terms after the change."},
	"closes_at":            {Value: EventTime, Means: "When the transaction must be back."},
	"closing_balance":      {Value: EventAmount, Means: "The closing balance of the statement."},
	"code":                 {Value: EventText, Means: "The operator's result code, empty before there is one."},
	"compared":             {Value: EventNumber, Means: "How many balances were compared."},
	"confirmed_by":         {Value: EventID, Means: "The officer who confirmed it."},
	"corrects":             {Value: EventID, Means: "The entry that it undoes."},
	"counterpart_of":       {Value: EventID, Means: "The wallet whose counterpart it is."},
	"created_by":           {Value: EventID, Means: "Who created it."},
	"crypto_amount":        {Value: EventAmount, Means: "The amount of crypto."},
	"currency":             {Value: EventText, Means: "The currency of the amount.", Words: assetWords()},
	"custody":              {Value: EventText, Means: "Who holds the key."},
	"customer_id":          {Value: EventID, Means: "The customer."},
	"decided_by":           {Value: EventID, Means: "The officer who confirmed or rejected it."},
	"deferred":             {Value: EventNumber, Means: "How many balances could not be compared yet."},
	"detail":               {Value: EventText, Means: "What it waits for or why it ended, empty for nothing."},
	"difference":           {Value: EventAmount, Means: "How far the bank's balance is above that of the ledger."},
	"differences":          {Value: EventNumber, Means: "How many balances differ."},
	"direction":            {Value: EventText, Means: "Whether money is collected or paid out.", Words: []string{string(Collection), string(Payout)}},
	"draft_id":             {Value: EventID, Means: "The unsigned transaction."},
	"event_types":          {Value: EventTexts, Means: "The types of events that are sent; none means all."},
	"exception_id":         {Value: EventID, Means: "The payment exception."},
	"expires_at":           {Value: EventTime, Means: "When it expires."},
	"signable_at":          {Value: EventTime, Means: "When the pause after the last approval of a change of the owners is over."},
	"supersedes":           {Value: EventID, Means: "The proposal that a cancel makes impossible."},
	"family_id":            {Value: EventID, Means: "The session."},
	"fee":                  {Value: EventAmount, Means: "The fee."},
	"fiat_amount":          {Value: EventAmount, Means: "The amount in the currency."},
	"fiat_currency":        {Value: EventText, Means: "The currency.", Words: assetWords()},
	"file_id":              {Value: EventID, Means: "The file."},
	"fixed":                {Value: EventAmount, Means: "The part of the fee that does not depend on the amount."},
	"float_account":        {Value: EventText, Means: "The account of the house at the mobile money operator.", Words: []string{FloatWorking, FloatUtility}},
	"from":                 {Value: EventText, Means: "The sending address, as the network shows it."},
	"from_day":             {Value: EventText, Means: "The first day, as YYYY-MM-DD."},
	"lines":                {Value: EventNumber, Means: "How many lines it has."},
	"matched_by":           {Value: EventID, Means: "The officer who named what explains it."},
	"new_lines":            {Value: EventNumber, Means: "How many lines no earlier statement had."},
	"opening_balance":      {Value: EventAmount, Means: "The opening balance of the statement."},
	"payment_id":           {Value: EventID, Means: "The payment of ours."},
	"side":                 {Value: EventText, Means: "Whether the money came in (credit) or went out (debit).", Words: texts([]StatementSide{SideCredit, SideDebit})},
	"statement_id":         {Value: EventID, Means: "The statement."},
	"statement_line_id":    {Value: EventID, Means: "The line of a bank's statement."},
	"to":                   {Value: EventText, Means: "The receiving address, as the network shows it."},
	"from_address":         {Value: EventText, Means: "The sending address."},
	"from_wallet_id":       {Value: EventID, Means: "The sending wallet."},
	"fx_rate_id":           {Value: EventID, Means: "The rate."},
	"fx_rate_quote_id":     {Value: EventID, Means: "The quote."},
	"hash":                 {Value: EventText, Means: "A hash of the quote's terms."},
	"host":                 {Value: EventText, Means: "The host of the endpoint's URL."},
	"id":                   {Value: EventID, Means: "The id of the object."},
	"index":                {Value: EventNumber, Means: "The position within the transaction."},
	"is_active":            {Value: EventFlag, Means: "Whether the account may be used."},
	"is_default":           {Value: EventFlag, Means: "Whether it is its owner's default on the network."},
	"jump_confirmed":       {Value: EventFlag, Means: "Whether an officer confirmed an unusual change of the rate."},
	"keep_free":            {Value: EventNumber, Means: "How many addresses are kept free."},
	"kind":                 {Value: EventText, Means: "The kind of the object."},
	"label":                {Value: EventText, Means: "The officer's label."},
	"ledger":               {Value: EventAmount, Means: "The balance in the ledger."},
	"max_order":            {Value: EventAmount, Means: "The largest order."},
	"maximum":              {Value: EventAmount, Means: "The largest fee."},
	"min_order":            {Value: EventAmount, Means: "The smallest order."},
	"minimum":              {Value: EventAmount, Means: "The smallest fee."},
	"momo_receipt_number":  {Value: EventText, Means: "The operator's receipt, empty before there is one."},
	"most":                 {Value: EventNumber, Means: "How many addresses there may be."},
	"moved":                {Value: EventAmount, Means: "The amount that moved, as far as it is known."},
	"network":              {Value: EventText, Means: "The network.", Words: texts(Networks())},
	"nonce":                {Value: EventNumber, Means: "The number of the transaction in its sender's sequence."},
	"nonce_account":        {Value: EventText, Means: "The nonce account of the transaction, empty where there is none."},
	"note":                 {Value: EventText, Means: "The officer's note."},
	"object_id":            {Value: EventID, Means: "The object that it belongs to."},
	"object_type":          {Value: EventText, Means: "The type of the object that it belongs to, empty for none."},
	"offer_id":             {Value: EventID, Means: "The offer."},
	"offer_type":           {Value: EventText, Means: "Whether crypto is sold or bought.", Words: []string{string(OfferSell), string(OfferBuy)}},
	"officer_id":           {Value: EventID, Means: "The officer."},
	"order_id":             {Value: EventID, Means: "The order."},
	"order_subtype":        {Value: EventText, Means: "How the order is carried out.", Words: texts(OrderSubtypes())},
	"order_type":           {Value: EventText, Means: "Who opened the order, and its direction.", Words: texts([]OrderType{OnRampBuy, OnRampSell, OffRampSell, OffRampBuy})},
	"owner_id":             {Value: EventID, Means: "The owner."},
	"owner_type":           {Value: EventText, Means: "The kind of the owner."},
	"paid_on":              {Value: EventText, Means: "The day of the payment, as YYYY-MM-DD."},
	"payment_method":       {Value: EventText, Means: "The method of payment."},
	"payment_phone_number": {Value: EventText, Means: "The masked phone number of the payment."},
	"phone_number":         {Value: EventText, Means: "The masked phone number."},
	"day":                  {Value: EventText, Means: "The day, as YYYY-MM-DD."},
	"amount_side":          {Value: EventText, Means: "Whether the amount of crypto or of shillings was given."},
	"fee_currency":         {Value: EventText, Means: "The asset of the fee.", Words: assetWords()},
	"is_open":              {Value: EventFlag, Means: "Whether banks settle on the day."},
	"merchant_id":          {Value: EventID, Means: "The merchant."},
	"method":               {Value: EventText, Means: "How money comes or leaves."},
	"more_in":              {Value: EventText, Means: "A wallet of several owners from which more can be brought, in words."},
	"name":                 {Value: EventText, Means: "The name."},
	"retired":              {Value: EventFlag, Means: "Whether the version ends the profile."},
	"pricing_profile_id":   {Value: EventID, Means: "The fee profile."},
	"profile_version":      {Value: EventNumber, Means: "The version of the fee profile."},
	"proposed_by":          {Value: EventID, Means: "The officer who proposed it."},
	"pulled_by":            {Value: EventID, Means: "The officer who froze outgoing payments."},
	"provider":             {Value: EventText, Means: "The mobile money operator."},
	"purpose":              {Value: EventText, Means: "The purpose."},
	"quote":                {Value: EventText, Means: "The currency of the rate.", Words: assetWords()},
	"rail":                 {Value: EventText, Means: "The rail of the payment."},
	"rate":                 {Value: EventAmount, Means: "The rate, in the currency per unit of crypto."},
	"reason":               {Value: EventText, Means: "The reason."},
	"receipt":              {Value: EventText, Means: "The receipt, empty before there is one."},
	"reference":            {Value: EventText, Means: "The bank's reference."},
	"refund_id":            {Value: EventID, Means: "The refund."},
	"refused_code":         {Value: EventText, Means: "The code of the last refusal, empty for none."},
	"destination_id":       {Value: EventID, Means: "The saved destination."},
	"executed_by":          {Value: EventID, Means: "The officer who executed it."},
	"payout_amount":        {Value: EventAmount, Means: "All that arrives."},
	"payout_asset":         {Value: EventText, Means: "What arrives.", Words: assetWords()},
	"payout_method":        {Value: EventText, Means: "How it leaves."},
	"source_amount":        {Value: EventAmount, Means: "All that leaves the merchant."},
	"source_asset":         {Value: EventText, Means: "What leaves the merchant.", Words: assetWords()},
	"source_network":       {Value: EventText, Means: "The network of the crypto that leaves.", Words: texts(Networks())},
	"withdrawal_id":        {Value: EventID, Means: "The withdrawal."},
	"available":            {Value: EventAmount, Means: "What is not held."},
	"from_amount":          {Value: EventAmount, Means: "All that leaves the wallet."},
	"from_asset":           {Value: EventText, Means: "What leaves the wallet.", Words: assetWords()},
	"high":                 {Value: EventAmount, Means: "The high mark, above which some can go elsewhere."},
	"low":                  {Value: EventAmount, Means: "The low mark, below which more has to come."},
	"quote_id":             {Value: EventID, Means: "The quote that the price is from."},
	"reservation_id":       {Value: EventID, Means: "The hold of what comes back to the wallet, in the treasury."},
	"to_amount":            {Value: EventAmount, Means: "All that comes back to the wallet."},
	"to_asset":             {Value: EventText, Means: "What comes back to the wallet.", Words: assetWords()},
	"removed_by":           {Value: EventID, Means: "Who removed it."},
	"replaces":             {Value: EventID, Means: "The rate that it replaces."},
	"requested_by":         {Value: EventID, Means: "Who asked for it."},
	"idle_rest_seconds":    {Value: EventNumber, Means: "For how many seconds an address rests after an order to which nothing came, if that is less."},
	"to_day":               {Value: EventText, Means: "The last day, as YYYY-MM-DD."},
	"user_percent":         {Value: EventNumber, Means: "How much of the pool the sales of unverified users may use."},
	"rest_seconds":         {Value: EventNumber, Means: "For how many seconds an address rests after an order."},
	"result_class":         {Value: EventText, Means: "The meaning of the result, empty where the code has none.", Words: texts(OutcomeClasses())},
	"result_code":          {Value: EventText, Means: "The operator's result code, empty before there is one."},
	"role":                 {Value: EventText, Means: "The role of the account.", Words: texts(Roles())},
	"runs":                 {Value: EventNumber, Means: "How many comparisons found the difference."},
	"scope":                {Value: EventText, Means: "What the fee is for."},
	"settled_by":           {Value: EventID, Means: "The officer who settled it."},
	"source":               {Value: EventText, Means: "The source of the rate."},
	"spread_basis_points":  {Value: EventNumber, Means: "The spread on the rate, in hundredths of a percent."},
	"stale_at":             {Value: EventTime, Means: "When the rate is too old for quotes."},
	"status":               {Value: EventText, Means: "The status of the object."},
	"status_detail":        {Value: EventText, Means: "What it waits for or why it ended, empty for nothing."},
	"subject_id":           {Value: EventID, Means: "The object that would change."},
	"superseded_by":        {Value: EventID, Means: "The quote that replaced it."},
	"swift_code":           {Value: EventText, Means: "The SWIFT code of the bank, empty for none."},
	"to_address":           {Value: EventText, Means: "The receiving address."},
	"to_wallet_id":         {Value: EventID, Means: "The receiving wallet in our custody."},
	"tx_hash":              {Value: EventText, Means: "The transaction, empty before there is one."},
	"type":                 {Value: EventText, Means: "The type of the wallet."},
	"usdt_amount":          {Value: EventAmount, Means: "The amount of the offer, in its asset."},
	"unexplained":          {Value: EventAmount, Means: "The part of the difference that comes from lines that nothing explained then."},
	"user_id":              {Value: EventID, Means: "The account."},
	"valid_from":           {Value: EventTime, Means: "From when it applies."},
	"value":                {Value: EventAmount, Means: "The value in shillings."},
	"value_date":           {Value: EventText, Means: "The day from which the bank counts the money, as YYYY-MM-DD."},
	"vendor_id":            {Value: EventID, Means: "The merchant."},
	"verified":             {Value: EventFlag, Means: "Whether the identity is verified."},
	"version":              {Value: EventNumber, Means: "The version of the object."},
	"wallet_address":       {Value: EventText, Means: "The address of the crypto."},
	"change_id":            {Value: EventID, Means: "The change by which two officers agreed to it, or to the rule that it follows."},
	"scheduled":            {Value: EventFlag, Means: "Whether a rule asked for it."},
	"automatic":            {Value: EventAmount, Means: "Up to how many shillings of mobile money need no officer in 24 hours."},
	"threshold":            {Value: EventAmount, Means: "From how much on all wallets together are swept."},
	"least":                {Value: EventAmount, Means: "The least that a wallet must have to be swept."},
	"wallet_id":            {Value: EventID, Means: "The wallet."},
	"destination":          {Value: EventText, Means: "The address that is paid."},
	"digest":               {Value: EventText, Means: "The hash of what an approval covers, in hexadecimal digits."},
	"ending":               {Value: EventText, Means: "The end that is wanted, as long as a payload could still be executed; empty for none."},
	"payload_id":           {Value: EventID, Means: "The payload."},
	"joint_id":             {Value: EventText, Means: "The network's name of what the owners sign."},
	"evidence":             {Value: EventText, Means: "Why it can never be executed."},
	"owner":                {Value: EventText, Means: "The address of the owner."},
	"held":                 {Value: EventFlag, Means: "Whether our key store made the signature."},
	"adopted":              {Value: EventFlag, Means: "Whether the account existed before, instead of being opened by a payment."},
	"approvals":            {Value: EventNumber, Means: "How many officers approve what leaves the account."},
	"policy_version":       {Value: EventNumber, Means: "The version of the rules by which officers approve what leaves the account."},
	"quorum":               {Value: EventNumber, Means: "The sum of the owners' weights that suffices for a payment."},
	"control_quorum":       {Value: EventNumber, Means: "The sum that may change the owners, where it is another one and known; 0 otherwise."},
	"was":                  {Value: EventTerms, Means: "The terms before the change."},
}

func assetWords() []string { return texts(money.Assets()) }
