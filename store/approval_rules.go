package store

import (
	"context"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// ruleRow is a row of approval_rules.
type ruleRow struct {
	Object   exchange.ApprovalObject `db:"object_type"`
	OneAbove decimal.Decimal         `db:"one_above"`
	TwoAbove decimal.Decimal         `db:"two_above"`
}

func (r ruleRow) rule() (exchange.ApprovalRule, error) {
	one, err := amountOf(money.KES, r.OneAbove)
	if err != nil {
		return exchange.ApprovalRule{}, err
	}
	two, err := amountOf(money.KES, r.TwoAbove)
	return exchange.ApprovalRule{OneAbove: one, TwoAbove: two}, err
}

// rules are the approval rules by object.
type rules = map[exchange.ApprovalObject]exchange.ApprovalRule

func rulesOf(rows []ruleRow) (rules, error) {
	all := rules{}
	for _, r := range rows {
		var err error
		if all[r.Object], err = r.rule(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

const readRules = `SELECT object_type, one_above, two_above FROM approval_rules ORDER BY object_type`

// ApprovalRules reads the values above which officers have to approve.
func (s *Store) ApprovalRules(ctx context.Context) (map[exchange.ApprovalObject]exchange.ApprovalRule, error) {
	var rows []ruleRow
	if err := s.db.All(ctx, &rows, readRules); err != nil {
		return nil, translate(err, "approval rule")
	}
	return rulesOf(rows)
}

const readRule = `SELECT object_type, one_above, two_above FROM approval_rules WHERE object_type = $1` + forShare

// approvalRule reads and locks the rule of an object until the transaction ends.
func (t unitTx) approvalRule(ctx context.Context, object exchange.ApprovalObject) (exchange.ApprovalRule, error) {
	var r ruleRow
	if err := t.Get(ctx, &r, readRule, object); err != nil {
		return exchange.ApprovalRule{}, translate(err, "approval rule")
	}
	return r.rule()
}
