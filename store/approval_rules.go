package store

import (
	"context"

	"kivuko/exchange"
)

// ruleRow is a row of approval_rules.
type ruleRow struct {
	ObjectType exchange.ApprovalObject
	exchange.ApprovalRule
}

// rules are the approval rules by object.
type rules = map[exchange.ApprovalObject]exchange.ApprovalRule

func rulesOf(rows []ruleRow) rules {
	all := rules{}
	for _, r := range rows {
		all[r.ObjectType] = r.ApprovalRule
	}
	return all
}

const readRules = `SELECT object_type, one_above||' KES' AS one_above, two_above||' KES' AS two_above FROM approval_rules ORDER BY object_type`

// ApprovalRules reads the values above which officers have to approve.
func (s *Store) ApprovalRules(ctx context.Context) (map[exchange.ApprovalObject]exchange.ApprovalRule, error) {
	var rows []ruleRow
	if err := s.db.All(ctx, &rows, readRules); err != nil {
		return nil, translate(err, "approval rule")
	}
	return rulesOf(rows), nil
}

const readRule = `SELECT object_type, one_above||' KES' AS one_above, two_above||' KES' AS two_above FROM approval_rules WHERE object_type = $1 FOR SHARE`

// approvalRule reads and locks the rule of an object until the transaction ends.
func (t unitTx) approvalRule(ctx context.Context, object exchange.ApprovalObject) (exchange.ApprovalRule, error) {
	var r ruleRow
	if err := t.Get(ctx, &r, readRule, object); err != nil {
		return exchange.ApprovalRule{}, translate(err, "approval rule")
	}
	return r.ApprovalRule, nil
}
