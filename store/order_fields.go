package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The statements about whole orders, from the list of their fields.
var (
	orderColumns  = selectedOrder()
	openedFields  = writtenFields(true)
	insertOrder   = insertedOrder()
	changedFields = writtenFields(false)
	updateOrder   = updatedOrder()
)

// orderReads is how columns are read that have no field of their own name.
var orderReads = map[string]string{
	"order_type":         `o.order_type AS type`,
	"order_subtype":      `o.order_subtype AS subtype`,
	"crypto_amount":      `o.crypto_amount||' '||o.asset AS "price.crypto"`,
	"fiat_amount":        `o.fiat_amount||' KES' AS "price.fiat"`,
	"vendor_amount":      `o.vendor_amount||' KES' AS "price.vendor"`,
	"rounding_amount":    `o.rounding_amount||' KES' AS "price.rounding"`,
	"fee_amount":         `o.fee_amount||' KES' AS "price.fee"`,
	"pricing_profile_id": `o.pricing_profile_id AS profile_id`,
	"network_fee":        networkFee + `||' '||o.network AS network_fee`,
	"asked_amount":       `o.asked_amount||' '||o.asset AS asked_amount`,
	"other_deposit_id":   `o.other_deposit_id AS "other.id"`,
	"other_tx":           `coalesce((SELECT d.tx_id FROM chain_deposits d WHERE d.id = o.other_deposit_id), '') AS "other.tx_id"`,
	"other_amount":       `(SELECT d.amount||' '||d.asset FROM chain_deposits d WHERE d.id = o.other_deposit_id) AS "other.amount"`,
	"other_fee":          `fee_of(o.pricing_profile_id, trunc((SELECT d.amount FROM chain_deposits d WHERE d.id = o.other_deposit_id) * o.rate, 2), 'KES')||' KES' AS "other.fee"`,
	"deposit_confirms":   depositConfirms + ` AS deposit_confirms`,
}

// networkFee is what the networks took for an order's payments, and for the gas that was brought to their senders.
const networkFee = `(SELECT coalesce(sum(p.fee + coalesce((SELECT sum(g.fee) FROM chain_payments g WHERE g.purpose = 'gas' AND g.object_id = p.id), 0)), 0)
	FROM chain_payments p WHERE p.object_id = o.id AND p.purpose IN ('order', 'funding', 'sweep'))`

// depositConfirms is the number of confirmations of a sale's deposit. While the sale waits, it is computed on each
// read: storing it would change each waiting order with each block. The newest seen block may be the final one itself.
const depositConfirms = `CASE WHEN o.status = 'confirming' AND o.escrow_address <> '' THEN coalesce((
	SELECT greatest(0, greatest(c.final_number, (SELECT max(b.number) FROM deposit_blocks b WHERE b.network = c.network)) - d.block + 1)
	FROM chain_deposits d JOIN deposit_cursors c ON c.network = d.network
	WHERE d.network = o.network AND d.tx_id = o.deposit_tx_hash AND d.to_address = o.escrow_address AND d.status <> 'orphaned'
	ORDER BY d.event_index LIMIT 1), 0) ELSE o.deposit_confirms END`

func selectedOrder() string {
	var columns []string
	for _, f := range exchange.OrderFields() {
		switch read := orderReads[f.Column]; {
		case f.Column == "":
		case read == "":
			columns = append(columns, "o."+f.Column)
		default:
			columns = append(columns, read)
		}
	}
	return strings.Join(columns, ", ")
}

// writtenFields are the fields that are written when an order is opened, or else when it changes.
func writtenFields(opens bool) []exchange.OrderField {
	var fields []exchange.OrderField
	for _, f := range exchange.OrderFields() {
		if f.Column != "" && (f.Write == exchange.OrderChanges || opens && f.Write == exchange.OrderOpened) {
			fields = append(fields, f)
		}
	}
	return fields
}

func insertedOrder() string {
	var columns, marks []string
	for i, f := range openedFields {
		columns, marks = append(columns, f.Column), append(marks, fmt.Sprintf("$%d", i+1))
	}
	columns, marks = append(columns, "intent_id"), append(marks, fmt.Sprintf("$%d", len(openedFields)+1))
	return `INSERT INTO orders (` + strings.Join(columns, ", ") + `) VALUES (` + strings.Join(marks, ", ") + `)`
}

// updatedOrder writes what may change of an order, under the guard of its state machine and version.
func updatedOrder() string {
	var sets []string
	for i, f := range changedFields {
		sets = append(sets, fmt.Sprintf("%s = $%d", f.Column, i+4))
	}
	return `UPDATE orders SET ` + strings.Join(sets, ", ") + ` WHERE id = $1 AND version = $2 AND status = ANY ($3)`
}

// columnsOf returns the values of an order's fields in their columns.
func columnsOf(o exchange.Order, fields []exchange.OrderField) ([]any, error) {
	values := make([]any, len(fields))
	for i, f := range fields {
		switch v := f.Value(&o).(type) {
		case uuid.UUID:
			values[i] = nullID(v)
		case time.Time:
			values[i] = nullTime(v)
		case money.Amount:
			values[i] = v.Decimal()
		case exchange.Phone:
			values[i] = v.Digits()
		case exchange.Beneficiary:
			text, err := document(v)
			if err != nil {
				return nil, err
			}
			values[i] = text
		default:
			values[i] = v
		}
	}
	return values, nil
}

// orderSnapshot is an order in events and audit rows: phone numbers masked, names omitted.
func orderSnapshot(o exchange.Order) map[string]any {
	snapshot := map[string]any{}
	for _, f := range exchange.OrderFields() {
		if f.Event.Name == "" {
			continue
		}
		switch v := f.Value(&o).(type) {
		case uuid.UUID:
			snapshot[f.Event.Name] = nullID(v)
		case money.Amount:
			snapshot[f.Event.Name] = v.String()
		case decimal.Decimal:
			snapshot[f.Event.Name] = v.String()
		case exchange.Phone:
			snapshot[f.Event.Name] = v.String()
		default:
			snapshot[f.Event.Name] = v
		}
	}
	if o.OffRamp() && o.Status == exchange.OrderPending { // before the deposit only the seller pays there, and reads it from the order
		snapshot["wallet_address"] = ""
	}
	return snapshot
}
