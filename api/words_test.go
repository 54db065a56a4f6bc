package api

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

var update = flag.Bool("update", false, "write the generated files")

const (
	contractFile = "openapi.yaml"
	wordsPage    = "../docs/words.md"
	lineLength   = 150
)

// word is a schema whose values are fixed in the code.
type word struct {
	name, description string
	values            []string
	nullable          bool
}

func text[S ~string](values ...S) []string {
	return each(values, func(v S) string { return string(v) })
}

// words returns the enums of the contract, by name.
func words() []word {
	all := append(statusWords(), []word{
		{"ErrorCode", "What went wrong. Each code has a page at /docs/errors/{code}.", text(Codes()...), false},
		{"EventType", "What happened.", eventTypes(), false},
		{"EventFilter", "A type of event, or all types of an object with the suffix .*, such as order.*.", eventFilters(), false},
		{"EventObject", "The kind of object of an event.", exchange.EventObjects(), false},
		{"AuditAction", "What was done.", exchange.AuditActions(), false},
		{"AuditObject", "The kind of object of a row of the audit log.", exchange.AuditObjects(), false},
		{"ParkReason", "Why a flow waits for an operator.", text(workflows.Reasons()...), false},
		{"Assurance", "How a user proved who it is: by a PIN, a password or a passkey, or a program by its key (machine).", text(exchange.AssuranceMachine, exchange.AssurancePIN, exchange.AssurancePassword, exchange.AssurancePasskey), false},
		{"InvitedRole", "A role that accounts get by invitation.", invitedRoles, false},
		{"Role", "The role of an account.", text(exchange.Roles()...), false},
		{"OptionalRole", "The role of an account; null for the service itself.", text(exchange.Roles()...), true},
		{"Network", "A blockchain.", networkNames, false},
		{"OptionalNetwork", "A blockchain, or null.", networkNames, true},
		{"WalletNetwork", "A network on which users create wallets.", walletNetworks, false},
		{"Stablecoin", "A stablecoin.", stablecoins, false},
		{"OptionalStablecoin", "A stablecoin, or null.", stablecoins, true},
		{"Crypto", "A stablecoin, or the coin of a network.", cryptoNames, false},
		{"Asset", "A currency or coin.", text(money.Assets()...), false},
		{"OptionalAsset", "A currency or coin, or null.", text(money.Assets()...), true},
		{"OptionalEventObject", "A kind of object, or null.", exchange.EventObjects(), true},
		{"FlowType", "The type of a flow in Temporal.", flowTypes(), false},
		{"PaymentMethod", "How shillings are paid: by mobile money or by bank.", paymentMethods, false},
		{"OwnerType", "Who owns a wallet; treasury is the house.", ownerTypes, false},
		{"ApprovalObject", "The kind of object that officers approve.", approvalObjects, false},
		{"ApprovalAction", "The decision of an officer.", approvalActions, false},
		{"AccountKind", "The purpose of an account of the ledger.", accountKinds, false},
		{"JournalKind", "What happened to the house's money outside of Kivuko.", journalKinds, false},
		{"FloatAccountName", "An account of the house at the mobile money operator: the one that payments come to (working), or the one that pays out (utility).", floatAccounts, false},
		{"OptionalFloatAccountName", "An account of the house at the mobile money operator, or null.", floatAccounts, true},
		{"DestinationKind", "How money reaches a destination: by mobile money, at a bank, or at an address on a network.", destinationKinds, false},
		{"StatementFormat", "The format of a bank's statement.", text(exchange.StatementFormats()...), false},
		{"Side", "A side of an account.", lineSides, false},
		{"StatementLineObject", "What explains a line of a bank's statement.", exchange.LineObjects(), false},
		{"OptionalStatementLineObject", "What explains a line of a bank's statement, or null.", exchange.LineObjects(), true},
		{"StatementReason", "Why the balance of a merchant changed.", text(exchange.StatementReasons()...), false},
		{"Rail", "The way that the money took: mobile money, a bank, or a chain.", rails, false},
		{"OrderType", "Who opens the order, and its direction.", text(exchange.OnRampBuy, exchange.OnRampSell, exchange.OffRampSell, exchange.OffRampBuy), false},
		{"OrderSubtype", "How the order is carried out.", orderSubtypes, false},
		{"OfferType", "Whether the merchant sells crypto or buys it.", offerTypes, false},
		{"TransferKind", "Whether the recipient is in our custody.", text(exchange.InternalTransfer, exchange.ExternalTransfer), false},
		{"FeeScope", "What a fee is for: a purchase (onramp) or a sale (offramp) of crypto, a transfer, a deposit or a withdrawal at the desk, or a swap.", feeScopes, false},
		{"WithdrawalMethod", "How a withdrawal leaves: by mobile money, by bank, or on a chain.", withdrawalMethods, false},
		{"BankRefundOutcome", "What an officer found out about a refund by bank.", bankRefundOutcomes, false},
		{"WithdrawalOutcome", "What an officer found out about a withdrawal that can't go on.", withdrawalOutcomes, false},
		{"FeeAsset", "What a fee may be for.", feeAssets, false},
		{"OptionalFeeAsset", "What a fee is for; null for every asset.", feeAssets, true},
		{"FeeMethod", "How money comes or leaves: by mobile money, by bank, to our mobile money number, or on a chain.", feeMethods, false},
		{"OptionalFeeMethod", "How money comes or leaves; null for every way.", feeMethods, true},
		{"QuotePurpose", meansOf("fx_quote", "purpose"), quotePurpose, false},
		{"AmountSide", "Whether the amount of crypto or of shillings was given.", amountSides, false},
		{"SweptAsset", "What earned fees are in: shillings or a stablecoin.", sweptAssets, false},
		{"ControlKind", "The kind of a change that needs a second officer.", text(exchange.ControlKinds()...), false},
		{"PaymentExceptionKind", "Why the money fits no order or payment.", exceptionKinds, false},
		{"MovementKind", meansOf("chain_deposit", "kind"), movementKinds, false},
		{"LimitName", "What a limit on a number counts: orders that wait for their payment, sales of 24 hours that were not paid (own ones, or a merchant's for its customers), transfers of a day (of a merchant with its subvendors), wallets, and subvendors.", text(exchange.LimitNames()...), false},
		{"MovementDirection", "The side of the wallet on which a movement is: into it, out of it, or from it to itself.", movementDirections, false},
		{"OptionalChainPurpose", "What a payment on a chain is for, or null.", text(exchange.ChainPurposes()...), true},
		{"MovementStatus", "Whether a movement on a chain is final.", movementStatuses, false},
		{"FilePurpose", "What a file is for.", text(exchange.FilePurposes()...), false},
		{"FileType", "The media type of a file, by its content.", text(exchange.FileTypes()...), false},
		{"RefundRail", "How a refund is paid: by mobile money, on a chain or by bank.", text(exchange.RefundRails()...), false},
		{"WalletPurpose", "The purpose of a wallet of the house.", text(exchange.HouseTreasury, exchange.HouseGas, exchange.HouseEscrow, exchange.HouseCounterpart, exchange.HouseMultisig), false},
		{"OptionalWalletPurpose", "The purpose of a wallet of the house; null for other wallets.", text(exchange.HouseTreasury, exchange.HouseGas, exchange.HouseEscrow, exchange.HouseCounterpart, exchange.HouseMultisig), true},
	}...)
	all = append(all, detailWords()...)
	all = append(all, otcWords()...)
	all = append(all, swapWords()...)
	all = append(all, multisigWords()...)
	slices.SortFunc(all, func(a, b word) int { return strings.Compare(a.name, b.name) })
	return all
}

func otcWords() []word {
	return []word{
		{"OTCMethod", "How the money of an OTC deposit comes: by bank, by a prompt on a phone (momo), or to our mobile money number (c2b).", otcMethods, false},
		{"OptionalOTCMethod", "How the money of an OTC deposit comes, or null.", otcMethods, true},
		{"OTCStatus", "The state of an OTC deposit.", otcStatuses, false},
		{"OptionalOTCStatus", "The state of an OTC deposit, or null.", otcStatuses, true},
		{"OTCStatusDetail", "What the OTC deposit waits for, or why it ended.", exchange.OTCDetails(), false},
		{"OTCFlag", "What about an OTC deposit an officer should look at.", otcFlags, false},
	}
}

func swapWords() []word {
	return []word{
		{"SwapStatus", "The state of a swap.", swapStatuses, false},
		{"SwapStatusDetail", "What the swap waits for, or why it ended.", exchange.SwapDetails(), false},
		{"SwapOutcome", "What officers decide about a swap that needs a review.", swapOutcomes, false},
		{"SwapLegRole", "What a payment of a swap does: it collects what is given, pays out what is got, or gives back what was collected.", text(exchange.SwapLegRoles()...), false},
		{"SwapLegStatus", "The state of a payment of a swap; completed is final.", text(exchange.ChainPaymentMachine.States()...), false},
		{"SwapAmountSide", "Whether the amount that leaves the wallet or the one that comes back to it was given.", swapSides, false},
		{"OptionalSwapMove", "Whether so much has to come to the wallet (in) or can go elsewhere (out); null while it is between its marks.", swapMoves, true},
	}
}

func multisigWords() []word {
	return []word{
		{"MultisigKind", "What enforces the quorum: a Safe on Ethereum (safe), the permissions of an account on TRON (tron), or a multisig of the Token program on Solana (spl).", multisigKinds, false},
		{"MultisigAsked", "The kind of an account of several owners that a request names, or that our key store has the keys (provider).", askedKinds, false},
		{"MultisigCustody", "Who holds the owners' keys: the owners, or some of them (self), or our key store, for an officer each (provider).", multisigCustody, false},
		{
			"MultisigStatus", "The state of an account of several owners: its keys are made or the account on the chain is read (preparing), a payment opens it (opening), it is a wallet (active), its owners on the chain are not those that were agreed any more (differs), or it is none that was agreed (refused).",
			multisigStatuses, false,
		},
		{"ProposalKind", "What a proposal does: it pays.", proposalKinds, false},
		{"ProposalStatus", "The state of a payment from a wallet of several owners.", proposalStatuses, false},
		{"ProposalStatusDetail", "What the proposal waits for, or why it ended.", exchange.ProposalDetails(), false},
		{"OptionalProposalEnding", "How the proposal is to end, as long as what owners signed could still be executed; null for not at all.", proposalEnds(), true},
		{"PayloadStatus", "Whether signatures can be executed (open), were executed, or can never be (void).", payloadStatuses, false},
	}
}

// proposalEnds are the ends of proposals that move nothing.
func proposalEnds() []string {
	return text(slices.DeleteFunc(slices.Clone(exchange.ProposalMachine.Final), func(s exchange.ProposalStatus) bool { return s == exchange.ProposalExecuted })...)
}

// meansOf is the meaning of a field in the events of an object.
func meansOf(object, field string) string {
	all := exchange.EventPayload(exchange.EventType{Type: object, Object: object})
	return all[slices.IndexFunc(all, func(f exchange.EventField) bool { return f.Name == field })].Means
}

func statusWords() []word {
	return []word{
		{"OrderStatus", "The state of an order.", text(exchange.OnRampMachine.States()...), false},
		{"OrderStatusDetail", "What the order waits for, or why it ended.", exchange.OrderDetails(), false},
		{"TransferStatus", "The state of a transfer.", text(exchange.TransferMachine.States()...), false},
		{"TransferStatusDetail", "What the transfer waits for, or why it ended.", exchange.TransferDetails(), false},
		{"OfferStatus", "The state of an offer.", text(exchange.OfferMachine.States()...), false},
		{"OfferStatusDetail", "What the offer needs before it can be ordered.", exchange.OfferDetails(), false},
		{"FeeSweepStatus", "The state of a sweep of earned fees.", text(exchange.FeeSweepMachine.States()...), false},
		{"FeeSweepStatusDetail", "What the fee sweep waits for.", exchange.FeeSweepDetails(), false},
		{"QuoteStatus", "The state of a quote.", text(exchange.QuoteMachine.States()...), false},
		{"QuoteStatusDetail", "What the quote waits for.", exchange.QuoteDetails(), false},
		{"RefundStatus", "The state of a refund.", text(exchange.RefundMachine.States()...), false},
		{"RefundStatusDetail", "What the refund waits for.", exchange.RefundDetails(), false},
		{"PaymentExceptionStatus", "The state of a payment exception.", text(exchange.ExceptionMachine.States()...), false},
		{"PaymentExceptionStatusDetail", "What the payment exception waits for.", exchange.ExceptionDetails(), false},
		{"ReconciliationStatus", "The state of a comparison of ledger and chain.", text(exchange.ReconciliationMachine.States()...), false},
		{"ReconciliationStatusDetail", "What the comparison waits for, or why it failed.", reconciliationDetails, false},
		{"DifferenceStatus", "The state of a difference.", text(exchange.DifferenceMachine.States()...), false},
		{"DifferenceStatusDetail", "What the difference waits for.", []string{exchange.WaitNothing, exchange.WaitOperator}, false},
		{"ControlTermsStatus", "The status of an object when a change of it was proposed.", controlTermsStatuses(), false},
		{"ControlStatus", "The state of a change that needs a second officer.", controlStatuses, false},
		{"ControlStatusDetail", "What the change waits for, or why it ended.", exchange.ControlDetails(), false},
		{"FloatMoveStatus", "The state of a movement of float.", text(exchange.FloatMoveMachine.States()...), false},
		{"FloatMoveStatusDetail", "What the movement waits for.", exchange.FloatMoveDetails(), false},
		{"EscrowStatus", "The state of an escrow address.", text(exchange.EscrowMachine.States()...), false},
		{"C2BStatus", "Whether the payment was matched.", c2bStatuses, false},
		{"C2BStatusDetail", "What the payment waits for.", c2bDetails, false},
		{"StatementStatus", "The state of a bank's statement.", statementStatuses, false},
		{"StatementStatusDetail", "What the statement waits for.", exchange.StatementDetails(), false},
		{"StatementLineStatus", "Whether the line is explained.", lineStatuses, false},
		{"StatementLineStatusDetail", "What the line waits for.", exchange.LineDetails(), false},
		{"DestinationStatus", "The state of a destination of withdrawals.", destinationStatuses, false},
		{"DestinationStatusDetail", "What the destination waits for before money goes there.", exchange.DestinationDetails(), false},
		{"WithdrawalStatus", "The state of a withdrawal.", withdrawalStatuses, false},
		{"WithdrawalStatusDetail", "What the withdrawal waits for, or why it ended.", exchange.WithdrawalDetails(), false},
		{"BankPayoutStatus", "The state of a payout by bank.", bankStatuses, false},
		{"BankPayoutStatusDetail", "What the payout waits for, or why it ended.", exchange.BankPayoutDetails(), false},
		{"WebhookStatus", "Whether events are sent to the endpoint.", webhookStatuses, false},
		{"WebhookDeliveryStatus", "The state of a delivery.", deliveryStatuses, false},
	}
}

// detailWords are words that explain others.
func detailWords() []word {
	return []word{
		{
			"BreakerState", "Whether payouts by mobile money are made: all (closed), one at a time until the operator accepts one (trial), or none (open). While it is open, sales by mobile money are refused with payout_suspended. moved: the database was put back from a backup, and nothing is requested of the operator until two officers release it.",
			text(exchange.BreakerClosed, exchange.BreakerTrial, exchange.BreakerOpen, exchange.BreakerMoved), false,
		},
		{"C2BChannel", "What reported a payment: the prompt of an order (booking), a notice of the operator (confirmation), or the operator's list (statement).", c2bChannels, false},
		{
			"ChainBalanceStatus", "Whether the balance was read. unavailable: no node answers now. unsupported: the network or the asset is not offered here.",
			[]string{chainRead, chainUnavailable, chainUnsupported},
			false,
		},
		{"Custody", "Who signs for the wallet: the service, which has the key (custodial), or several owners (multisig).", text(exchange.Custodial, exchange.Multisig), false},
		{
			"EscrowTrouble", "Why the address can't be leased to another order, whatever its status: it has stablecoins (money), a movement that is not final (seen), an open payment exception (exception), or a movement that waits for an officer (quarantine). null when nothing is wrong.",
			text(exchange.EscrowMoney, exchange.EscrowSeen, exchange.EscrowException, exchange.EscrowQuarantine), true,
		},
		{"ExceptionVerdict", "What is decided about the payment exception.", text(exchange.ExcAccepted, exchange.ExcCredited, exchange.ExcWrittenOff), false},
		{"ParkCommand", "A command of an operator to a parked flow.", []string{verbRetry, verbRefund, verbResolve}, false},
		{
			"QuoteRounding", "How the shillings are rounded.",
			[]string{exchange.QuoteTerms{Side: exchange.QuoteBuy}.Rounding(), exchange.QuoteTerms{Side: exchange.QuoteSell}.Rounding()},
			false,
		},
		{"RetryResult", "Whether the flow accepted the retry; unknown when it did not answer in time.", []string{retryAccepted, retryRefused, retryUnknown}, false},
		{"WebhookScope", "Whose events the endpoint gets: its owner's (own), the merchant's (merchant), or everybody's (house).", []string{scopeOwn, scopeMerchant, scopeHouse}, false},
		{
			"WebhookStatusDetail", "Why the endpoint is disabled: its owner or an admin did it (by_user), it answered 410 (gone), no delivery succeeded for too long (failing), or its owner is not active (owner_inactive). null while it is active.",
			[]string{exchange.WebhookByUser, exchange.WebhookGone, exchange.WebhookFailing, exchange.WebhookOwnerInactive},
			true,
		},
		{
			"WebhookDeliveryStatusDetail", "Why the delivery failed for good: all attempts failed (exhausted), the event is too long (too_large), the endpoint answered 410 (gone), or it was disabled or deleted. null otherwise.",
			[]string{exchange.WebhookExhausted, exchange.WebhookErrSize, exchange.WebhookGone, exchange.WebhookEndpointDisabled, exchange.WebhookEndpointDeleted},
			true,
		},
		{
			"WebhookDeliveryError", "Why the last attempt failed: a status that is not 2xx (status), no answer in time (timeout), a name without an address (dns), an address outside of the public internet (blocked_address), a fault of TLS (tls) or of the connection, or an event that is too long (too_large). null when it succeeded or there was none.",
			[]string{
				exchange.WebhookErrStatus, exchange.WebhookErrTimeout, exchange.WebhookErrDNS, exchange.WebhookErrBlocked, exchange.WebhookErrTLS,
				exchange.WebhookErrConnect, exchange.WebhookErrSize,
			},
			true,
		},
	}
}

// controlTermsStatuses are the statuses of the objects that officers decide about in pairs.
func controlTermsStatuses() []string {
	all := slices.Concat(text(exchange.OnRampMachine.States()...), text(exchange.OffRampMachine.States()...), text(exchange.OrderPayoutMachine.States()...),
		text(exchange.RefundMachine.States()...), text(exchange.ExceptionMachine.States()...), text(exchange.WithdrawalMachine.States()...),
		text(exchange.SwapMachine.States()...))
	slices.Sort(all)
	return slices.Compact(all)
}

func flowTypes() []string {
	return each(workflows.Flows(), func(f workflows.Flow) string { return f.Type })
}

func eventFilters() []string {
	all := eventTypes()
	for _, t := range eventTypes() {
		prefix, _, _ := strings.Cut(t, ".")
		all = append(all, prefix+".*")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wrapped returns the values of an enum in lines of a readable length.
func wrapped(values []string, indent string) string {
	var b strings.Builder
	at := 0
	for i, v := range values {
		if i > 0 {
			b.WriteString(",")
			at++
		}
		if at+len(v)+len(indent)+2 > lineLength {
			b.WriteString("\n" + indent)
			at = 0
		} else if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(v)
		at += len(v) + 1
	}
	return b.String()
}

// generatedWords returns the part of the contract with the enums.
func generatedWords() string {
	var b strings.Builder
	for _, w := range words() {
		kind, values := "string", w.values
		if w.nullable {
			kind, values = "[string, 'null']", append(slices.Clone(values), "null")
		}
		fmt.Fprintf(&b, "    %s:\n      type: %s\n      description: %s\n      enum: [%s]\n", w.name, kind, yamlText(w.description), wrapped(values, "        "))
	}
	return b.String()
}

func yamlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// eventName returns the name of an event as an identifier: OrderCompletedEvent.
func eventName(kind string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(kind, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String() + "Event"
}

// generatedWebhooks returns the section of webhooks. The schemas are inline, because generators of clients leave out
// components that no path uses.
func generatedWebhooks() string {
	var b strings.Builder
	for _, e := range exchange.EventTypes() {
		fmt.Fprintf(&b, `  %[1]s:
    post:
      operationId: on%[2]s
      tags: [Webhooks]
      summary: %[3]s
      security: []
      requestBody:
        required: true
        content:
          application/json:
            schema:
              type: object
              description: %[3]s
              required: [id, type, timestamp, data]
              properties:
                id: {type: string, pattern: '^evt_[0-9]+$', description: 'The header webhook-id, the same in each attempt.'}
                type: {type: string, const: %[1]s, description: What happened.}
                timestamp: {$ref: '#/components/schemas/Timestamp'}
                data:
                  type: object
                  description: 'The event, as GET /events shows it.'
                  required: [cursor, object_type, object_id, sequence, type, payload, at]
                  properties:
                    cursor: {type: integer, description: 'The position in the log.'}
                    object_type: {type: string, const: %[4]s, description: The type of the object.}
                    object_id: {$ref: '#/components/schemas/UUID'}
                    sequence: {type: integer, minimum: 1, description: 'The sequence number of the event for its object, from 1 without gaps.'}
                    type: {type: string, const: %[1]s, description: What happened.}
                    at: {$ref: '#/components/schemas/Timestamp'}
                    payload:
%[5]s      responses:
        '200': {description: Any status from 200 to 299 acknowledges the event.}
`, e.Type, eventName(e.Type), yamlText(e.Means), e.Object, generatedPayload(e, "                      "))
	}
	return b.String()
}

// generatedPayload returns the schema of the payload of a type of event.
func generatedPayload(e exchange.EventType, indent string) string {
	var b, required strings.Builder
	for _, f := range exchange.EventPayload(e) {
		if !f.Optional {
			required.WriteString(", " + f.Name)
		}
		kind, more := payloadType(f)
		if f.Nullable {
			kind = "[" + kind + ", 'null']"
		}
		fmt.Fprintf(&b, "%s  %s: {type: %s%s, description: %s}\n", indent, f.Name, kind, more, yamlText(f.Means))
	}
	return fmt.Sprintf("%[1]stype: object\n%[1]sdescription: 'The object after the event, without secrets and personal data.'\n%[1]srequired: [%[2]s]\n%[1]sproperties:\n%[3]s",
		indent, strings.TrimPrefix(required.String(), ", "), b.String())
}

// payloadType returns the JSON type of a field, and what else its schema says.
func payloadType(f exchange.EventField) (kind, more string) {
	switch f.Value {
	case exchange.EventID:
		return "string", ", format: uuid"
	case exchange.EventAmount:
		return "string", `, pattern: '^-?[0-9]+(\.[0-9]+)?$'`
	case exchange.EventTime:
		return "string", ", format: date-time"
	case exchange.EventNumber:
		return "integer", ""
	case exchange.EventFlag:
		return "boolean", ""
	case exchange.EventTexts:
		return "array", ", items: {type: string}"
	case exchange.EventTerms:
		return "object", ""
	case exchange.EventText:
	}
	if len(f.Words) > 0 {
		words := each(f.Words, func(w string) string { return cmp.Or(w, "''") })
		if f.Nullable { // a list without null refuses it, whatever type says
			words = append(words, "null")
		}
		return "string", ", enum: [" + strings.Join(words, ", ") + "]"
	}
	return "string", ""
}

// between replaces the text after the line first and before the line last.
func between(t *testing.T, page, first, last, content string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, first+"\n")
	head := page[:len(page)-len(rest)]
	i := strings.Index(rest, last)
	if !found || i < 0 {
		t.Fatalf("the lines %q and %q are not in the page", first, last)
	}
	return head + content + rest[i:]
}

// TestWordsAreCurrent compares the generated files with the code.
func TestWordsAreCurrent(t *testing.T) {
	contract, err := os.ReadFile(contractFile)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(contract), "    # The words that clients branch on. Generated from the code by go generate ./api.",
		"    # The end of what is generated.", generatedWords())
	want = between(t, want, "webhooks:", "# The end of the webhooks.", generatedWebhooks())
	holdFile(t, contractFile, want)
	holdFile(t, wordsPage, generatedPage())
}

func holdFile(t *testing.T, name, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is not current (%v): run go generate ./api", name, err)
	}
}

// generatedPage returns docs/words.md.
func generatedPage() string {
	var b strings.Builder
	b.WriteString("# The words of the contract\n\n<!-- Generated by go generate ./api. Do not edit. -->\n\n" +
		"Clients branch on these words. The lists grow: the [contract](contract.md#compatibility) explains how to handle an unknown word.\n\n" +
		"## Error codes\n\n| Code | Status | Meaning | What to do |\n|---|---|---|---|\n")
	for _, c := range Codes() {
		m := meanings[c]
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", c, m.status, m.means, m.do)
	}
	b.WriteString("\n## Event types\n\nThose for staff are sent only to endpoints of the house.\n\n| Type | Object | Meaning | For |\n|---|---|---|---|\n")
	for _, e := range exchange.EventTypes() {
		reader := "parties and staff"
		if e.Staff {
			reader = "staff"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", e.Type, e.Object, e.Means, reader)
	}
	b.WriteString("\n## Reasons to park\n\n| Reason | What is wrong | What can be done | Commands |\n|---|---|---|---|\n")
	for _, r := range slices.Sorted(slices.Values(workflows.Reasons())) {
		a := r.Advice()
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r, a.What, a.Do, strings.Join(a.Verbs, ", "))
	}
	return b.String()
}

// TestReconciliationDetails checks that the detail of a failed run is one of the fixed values.
func TestReconciliationDetails(t *testing.T) {
	for detail, want := range map[string]string{"superseded": "superseded", "the node is behind": "failed", "": exchange.WaitNothing} {
		status := exchange.ReconciliationFailed
		if detail == "" {
			status = exchange.ReconciliationCompleted
		}
		got := reconciliationWire(exchange.Reconciliation{Status: status, Detail: detail}).StatusDetail
		if got != want || !slices.Contains(reconciliationDetails, got) {
			t.Errorf("detail %q is shown as %q, want %q", detail, got, want)
		}
	}
}

// TestExamplesAreCurrent compares the examples with what the tests of the list exchanged. Tests that did not run before it
// run in it; this file is the last one, so that in a run of all tests none runs twice.
func TestExamplesAreCurrent(t *testing.T) {
	current := map[string]operationExample{}
	for _, test := range exampleTests() {
		name := nameOf(test)
		if exchanges.byTest[name] == nil {
			t.Run(name, test)
		}
		for id, x := range exchanges.byTest[name] {
			if known, found := current[id]; !found || poor(known.Answer) && !poor(x.Answer) {
				current[id] = x
			}
		}
	}
	raw, err := json.MarshalIndent(current, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	holdFile(t, examplesFile, string(raw)+"\n")
}
